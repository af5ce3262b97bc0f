"""What makes two calls alike to a person who decides: the same programs with the same first words."""

from pathlib import PurePosixPath

from whisper_tui.model.command import Argv, Function
from whisper_tui.model.state import CallRecord

LONGEST = 60
"""Characters of a likeness; what differs behind them is alike."""


def likeness(record: CallRecord) -> str:
    """The beginnings of a call's commands as the policy reads them, else its first word. As the agent sent it."""
    if record.verdict is not None and record.verdict.prefixes:
        return " · ".join(dict.fromkeys(" ".join(prefix) for prefix in record.verdict.prefixes))[:LONGEST]
    command = record.spec.command
    if isinstance(command, Argv):
        return (PurePosixPath(command.program).name or command.program)[:LONGEST]
    if isinstance(command, Function):
        return command.tool[:LONGEST]
    words = command.text.split(maxsplit=1)
    return words[0][:LONGEST] if words else "nothing"
