#!/bin/sh
# Writes a very long log: 400,000 lines of 100 bytes.
exec awk 'BEGIN {
    for (line = 1; line <= 400000; line++)
        printf "%7d GET /plants/%06d.html 200 %-63s\n", line, line * 7919 % 1000000, "checked"
}'
