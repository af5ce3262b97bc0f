#!/bin/sh
# Checks the site; one check fails until tax.conf holds the right rate.
set -eu
pause=${DEMO_PAUSE:-0.1}
for check in 'every page has a title' 'every image has a caption' 'the contact form has a label'; do
    printf '\033[32mPASS\033[0m %s\n' "$check"
    sleep "$pause"
done
if grep -q '^rate = 20$' tax.conf; then
    printf '\033[32mPASS\033[0m prices include the tax\n'
    printf '\033[1;32m4 checks, all good\033[0m\n'
    exit 0
fi
printf '\033[1;31mFAIL\033[0m prices include the tax\n'
printf 'prices.test: a rake for 100.00 should cost 120.00 with tax\n' >&2
printf '    expected \033[32m120.00\033[0m\n    was      \033[31m119.00\033[0m\n' >&2
printf '    the rate comes from tax.conf, line 1\n' >&2
printf '\033[1;31m4 checks, 1 failed\033[0m\n'
exit 1
