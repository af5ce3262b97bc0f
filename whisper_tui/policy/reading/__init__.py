"""Reading shell text: a strict reader that decides what may be allowed, and wide ones that look for what to deny."""
