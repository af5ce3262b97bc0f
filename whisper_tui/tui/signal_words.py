"""Signals in plain words, those that people send most first."""

import signal
from dataclasses import dataclass

EXPLAINED: dict[str, str] = {
    "SIGINT": "Interrupt, as Ctrl+C does",
    "SIGTERM": "Please end; programs may clean up first",
    "SIGKILL": "End at once; nothing is cleaned up",
    "SIGHUP": "The terminal is gone; servers often read settings anew",
    "SIGQUIT": "Quit and leave a core dump for debugging",
    "SIGSTOP": "Pause; it cannot be caught, and SIGCONT goes on",
    "SIGCONT": "Go on after a pause",
    "SIGTSTP": "Pause, as Ctrl+Z does; programs may refuse",
    "SIGUSR1": "The program's own meaning, often a progress report",
    "SIGUSR2": "The program's own meaning",
    "SIGWINCH": "The window has another size",
    "SIGPIPE": "Nobody reads what it writes",
    "SIGALRM": "A timer of the program ran out",
    "SIGVTALRM": "A timer that counts computing time ran out",
    "SIGPROF": "A timer of a profiler ran out",
    "SIGCHLD": "A child of it has ended; most programs ignore it",
    "SIGTTIN": "It reads from a terminal that it does not have",
    "SIGTTOU": "It writes to a terminal that it does not have",
    "SIGABRT": "Abort and leave a core dump",
    "SIGSEGV": "As if it had used memory that is not its own",
    "SIGBUS": "As if memory that it uses had gone away",
    "SIGFPE": "As if it had divided by zero",
    "SIGILL": "As if it had met bytes that are no instruction",
    "SIGTRAP": "As if it had met a breakpoint of a debugger",
    "SIGSYS": "As if it had made a system call that is not allowed",
    "SIGXCPU": "It has used more computing time than it may",
    "SIGXFSZ": "It has written a larger file than it may",
    "SIGURG": "Urgent data on a connection; most programs ignore it",
    "SIGIO": "A file or connection is ready",
    "SIGPWR": "The power is about to fail",
    "SIGSTKFLT": "As if its coprocessor had failed",
    "SIGEMT": "As if an emulated instruction had failed",
    "SIGINFO": "Report how far it is, as Ctrl+T does",
    "SIGRTMIN": "The first real-time signal, the program's own",
    "SIGRTMAX": "The last real-time signal, the program's own",
}


@dataclass(frozen=True)
class SignalChoice:
    """A signal that can be sent."""

    number: int
    name: str
    words: str


def signal_choices() -> tuple[SignalChoice, ...]:
    """Every signal of this system, the usual ones first."""
    known = {member.name: int(member) for member in signal.Signals}
    usual = [name for name in EXPLAINED if name in known]
    others = [name for name in known if name not in EXPLAINED]
    return tuple(
        SignalChoice(known[name], name, EXPLAINED.get(name, "The system's own meaning")) for name in (*usual, *others)
    )
