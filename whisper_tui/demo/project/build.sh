#!/bin/sh
# Builds the site into build/, with colours and a progress bar.
set -eu
pause=${DEMO_PAUSE:-0.1}
mkdir -p build
printf '\033[1mBuilding the garden site\033[0m\n'
for page in index plants tools contact; do
    printf '<h1>%s</h1>\n' "$page" > "build/$page.html"
    printf '  \033[32mok\033[0m  %s.html\n' "$page"
    sleep "$pause"
done
printf '\033[33mwarning:\033[0m plants.md links to ferns.md, which does not exist\n' >&2
bar=
for percent in 10 20 30 40 50 60 70 80 90 100; do
    bar="$bar##"
    printf '\r  images [%-20s] %3d%%' "$bar" "$percent"
    sleep "$pause"
done
printf '\n\033[1;32mBuilt 4 pages and 12 images\033[0m\n'
