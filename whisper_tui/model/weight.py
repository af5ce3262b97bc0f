"""About how much memory a call takes: what an agent sends is bounded by this."""

from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import Argv, Command, Shell

_OBJECT = 64
"""Bytes that anything takes beside what it holds."""


def weight(call: ToolCall) -> int:
    """Bytes, roughly, and rather too many than too few."""
    spec = call.spec
    parts = (call.arguments, call.description, _asked(spec.command), spec.environment, spec.cwd)
    return sum(map(_of, parts))


def _asked(command: Command) -> object:
    match command:
        case Argv(program=program, args=args):
            return (program, args)
        case Shell(text=text, shell=shell):
            return (text, shell)
        case _:
            return command.arguments


def _of(value: object) -> int:
    match value:
        case str():
            return _OBJECT + len(value) * (1 if value.isascii() else 4)
        case dict():
            return _OBJECT + sum(_of(name) + _of(part) for name, part in value.items())
        case list() | tuple():
            return _OBJECT + sum(map(_of, value))
        case int():
            return _OBJECT + value.bit_length() // 8
        case _:
            return _OBJECT
