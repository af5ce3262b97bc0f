"""Fuzzing by hand: rounds with fresh seeds until the time is over or a failure is found."""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import time


def main() -> int:
    """Returns the exit code of the round that found something, or 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="begin no round after so long (default: 300)")
    parser.add_argument("--seed", type=int, help="run one round with this seed")
    options, more = parser.parse_known_args()
    deadline = time.monotonic() + options.seconds
    while True:
        seed = options.seed if options.seed is not None else secrets.randbelow(2**32)
        sys.stdout.write(f"fuzzing with seed {seed}\n")
        sys.stdout.flush()
        left = max(60.0, deadline - time.monotonic())
        words = ["-q", "-x", "-n", "0", "--timeout", "3600", f"--hypothesis-seed={seed}", "tests/fuzz", *more]
        environment = {**os.environ, "HYPOTHESIS_PROFILE": "long"}
        round_ = subprocess.Popen([sys.executable, "-m", "pytest", *words], env=environment)
        try:
            code = round_.wait(None if options.seed is not None else left)
        except subprocess.TimeoutExpired:
            round_.send_signal(signal.SIGINT)  # so that it ends what it has started
            round_.wait()
            sys.stdout.write("the time is over, and nothing was found\n")
            return 0
        if code or options.seed is not None or time.monotonic() > deadline:
            return code


if __name__ == "__main__":
    sys.exit(main())
