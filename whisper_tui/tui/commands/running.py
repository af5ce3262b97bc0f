"""The commands for what runs, or what it left behind."""

from whisper_tui.tui.commands.command import Command

RUN: tuple[Command, ...] = (
    Command("type", "i", "Type", "Send a line to a command that reads its input.", "Run", "reads"),
    Command(
        "terminal",
        "T",
        "Terminal",
        "Let every key go to the command in its terminal, and the mouse if it asks for it; Ctrl+] gives both back.",
        "Run",
        "terminal",
    ),
    Command(
        "pause",
        "p",
        "Pause",
        "Pause what runs with everything it started, or let it continue; its timeout goes on.",
        "Run",
        "alive",
    ),
    Command("signal", "x", "Signal", "Send any signal to what runs, or to what it left behind.", "Run", "alive"),
    Command("kill", "k", "Kill", "End it with everything it started: TERM, its grace, then KILL.", "Run", "alive"),
    Command("retry", "ctrl+r", "Retry", "Ask again for what has ended, in its session.", "Run", "ended"),
    Command(
        "rerun-unconfined",
        "U",
        "Run unconfined",
        "Run a command again that its sandbox blocked: ask for it once more, and approve that without a sandbox.",
        "Run",
        "blocked",
    ),
    Command("background", "b", "Background", "List everything that was left running, of all sessions.", "Run"),
)
