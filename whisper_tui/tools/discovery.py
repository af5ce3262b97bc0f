"""Tools that installed packages offer, by the entry-point group `whisper_tui.tools`."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.supervised_tool import SupervisedTool

GROUP = "whisper_tui.tools"


@dataclass(frozen=True)
class Discovered:
    """The good and the bad together, so that one broken package takes nothing from the others."""

    tools: tuple[AITool, ...]
    problems: tuple[str, ...]
    """One sentence for each entry point that offers no tool."""


def discover_tools(context: ToolContext, offered: Iterable[EntryPoint] | None = None) -> Discovered:
    """Load what is offered; None: by all installed packages.

    An entry point names a tool, a class of tools, or a function that makes a tool of a `ToolContext`.
    """
    tools: list[AITool] = []
    problems: list[str] = []
    for entry in entry_points(group=GROUP) if offered is None else offered:
        found = _load(entry, context)
        if isinstance(found, AITool):
            tools.append(found)
        else:
            problems.append(found)
    return Discovered(tuple(tools), tuple(problems))


def _load(entry: EntryPoint, context: ToolContext) -> AITool | str:
    try:
        made = _made(entry.load(), context)
    except Exception as error:  # noqa: BLE001  the code of another package may raise anything
        return f"the tool {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
    if not isinstance(made, AITool):
        return f"the entry point {entry.name!r} ({entry.value}) offers no tool but a {type(made).__name__}"
    return made


def _made(offered: Any, context: ToolContext) -> Any:
    if not callable(offered) or isinstance(offered, AITool):
        return offered
    if isinstance(offered, type) and issubclass(offered, AITool) and not issubclass(offered, SupervisedTool):
        return offered()
    return offered(context)
