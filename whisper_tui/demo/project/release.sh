#!/bin/sh
# Pretends to release the site: it only writes down where to.
set -eu
place=${1:?'name the place to release to'}
printf 'Releasing 4 pages to \033[1m%s\033[0m\n' "$place"
sleep "${DEMO_PAUSE:-0.1}"
echo "$place" > released-to
printf '\033[32mDone:\033[0m %s has the new site\n' "$place"
