"""The readers of shell text: a strict one that decides what may be allowed, and wide ones that find what to deny."""
