#!/bin/sh
# Pretends to be a preview server: it writes a line now and then, and ends by itself after some minutes.
trap 'printf "preview: stopped\n"; exit 0' TERM
printf 'preview: ready\n'
count=0
while [ "$count" -lt 600 ]; do
    count=$((count + 1))
    sleep 1
    printf 'preview: %d s without a visitor\n' "$count"
done
