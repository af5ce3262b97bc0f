"""A terminal cockpit in which a human supervises every command that AI agents want to run.

The names below are the library. They are loaded when they are first used, so that `import whisper_tui` costs nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes a third of the time in which Python starts
    from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "whisper_tui.library": ("Agent", "connect", "in_process"),
    "whisper_tui.model.call": ("Argv", "CallRequest", "CommandSpec", "Function", "Session", "Shell"),
    "whisper_tui.model.decision": ("Approve", "Deny"),
    "whisper_tui.model.errors": ("WhisperError",),
    "whisper_tui.model.state": ("CallRecord",),
    "whisper_tui.tools": (
        "AITool",
        "Answer",
        "ArgumentError",
        "CommandTool",
        "ToolContext",
        "ToolFailure",
        "ToolRegistry",
        "ToolSet",
        "standard_registry",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604  all of them are strings


def __getattr__(name: str) -> "Any":
    """A name of the library, loaded now."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """All names, loaded or not."""
    return sorted({*globals(), *__all__})
