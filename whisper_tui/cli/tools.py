"""`tools`: what agents are offered, as a table or in the forms that models are given."""

import os
import sys
from typing import TYPE_CHECKING, Any, cast

from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.cli.table import print_table
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.tools import AITool

FORMATS = ("table", "openrouter", "prompt", "json")


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "tools",
        "show the tools that agents are offered",
        _tools,
        details="`openrouter` is the array of definitions that chat completion APIs take, `prompt` the text for a "
        "model's prompt, `json` all that is known about each tool.",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print them (default: table)")
    parser.add_argument("--set", metavar="NAME", help="only the tools of this set")


def _tools(options: Options) -> int:
    tools = _offered(options)
    match options.format:
        case "openrouter":
            print_json([tool.get_openrouter_tool_definition() for tool in tools])
        case "prompt":
            sys.stdout.write("\n\n".join(tool.get_ai_prompt_instructions() for tool in tools) + "\n")
        case "json":
            print_json([_row(tool) for tool in tools])
        case _:
            print_table(("TOOL", "CATEGORY", "DESCRIPTION"), (_words(tool) for tool in tools))
    return 0


def _words(tool: "AITool") -> tuple[str, ...]:
    return visible(tool.name), visible(tool.category or ""), visible(tool.description)


def _offered(options: Options) -> "list[AITool]":
    """The tools of a session in this directory; nothing of them is called, so no supervisor is needed."""
    from whisper_tui.config import load
    from whisper_tui.config.offered import offered
    from whisper_tui.model.call import Session
    from whisper_tui.tools import ToolContext

    session = Session(id="s0", name="command line", root=os.path.realpath(os.curdir), opened_at=0.0)
    registry = offered(load(home_of(options)).tools, ToolContext(cast("Any", None), session))
    return registry.get_all_tools() if options.set is None else registry.get_tool_set(options.set)


def _row(tool: "AITool") -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "tags": list(tool.tags),
        "read_only": tool.read_only,
        "parameters": tool.parameters_schema,
        "prompt": tool.get_ai_prompt_instructions(),
    }
