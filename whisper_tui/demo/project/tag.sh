#!/bin/sh
# Asks for the name of a release, in a terminal.
set -eu
if ! [ -t 0 ]; then
    echo 'tag.sh asks questions, so it needs a terminal' >&2
    exit 2
fi
printf 'Name of this release: '
read -r name
printf 'Tag the site as \033[1m%s\033[0m? [y/N] ' "$name"
read -r answer
if [ "$answer" != y ]; then
    echo 'Nothing was tagged'
    exit 1
fi
echo "$name" > tag
printf '\033[32mTagged\033[0m %s\n' "$name"
