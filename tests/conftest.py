"""For every test."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever starts tests in the background of a shell has them ignore it, and every program that they start with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
