"""For every test."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever starts tests in the background of a shell has them ignore it, and every program that they start with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same for whoever starts them with nohup: programs that end with their terminal then rightly would not.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
