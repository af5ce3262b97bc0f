"""Draws the pages of this directory: what each tool takes, and what it really answers."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from whisper_tui.model.call import Session
from whisper_tui.tools import AITool, ToolContext, standard_registry

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"
WORKSPACE = "/projects/shop"
"""What the pages call the directory in which the examples run."""

OWN = """\
# Tools of your own

A tool is a class with a name, a description, a JSON Schema for its arguments, words for the model, and `execute`.
Give it to `connect` or `in_process`, or register it later with `agent.tools.register_tool`: its calls go through the
same approval queue as commands, without a line of yours. The human sees the tool, its description and the arguments,
may edit or deny them, and your tool runs in your own process once that is decided. `needs_approval(arguments)` says
which calls need nobody's consent, and `approval_description(arguments)` tells the human more.

{program}

It prints:

{output}

An installed package offers tools to every session by an entry point, which names a tool, a class of tools, or a
function that makes a tool of a `ToolContext`:

```toml
[project.entry-points."whisper_tui.tools"]
publish = "my_package:Publish"
```
"""


def tools() -> list[AITool]:
    """The standard tools, of a session that only describes them."""
    session = Session(id="s1", name="an agent", root=WORKSPACE, opened_at=0.0)
    context = ToolContext(cast(Any, None), session)
    return standard_registry(context).get_all_tools()


def run(name: str) -> str:
    """What an example prints, with the values that change from run to run replaced."""
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place).resolve() / "shop"
        workspace.mkdir()
        environment = {**os.environ, "HOME": str(workspace), "SHELL": "/bin/bash", "TMPDIR": str(Path(place).resolve())}
        answer = subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py")],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        if answer.returncode:
            raise RuntimeError(f"the example {name} failed:\n{answer.stderr}")
        return steady(answer.stdout, str(workspace))


def steady(text: str, workspace: str) -> str:
    """A text without process ids and temporary directories."""
    text = text.replace(workspace, WORKSPACE)
    text = re.sub(r'("pid": |process )\d+', r"\g<1>4242", text)
    return re.sub(r'("backgroundPids": \[\s*)\d+', r"\g<1>4243", text)


def page(name: str) -> str:
    """One page, drawn anew."""
    program, output = _block("python", (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")), run(name)
    if name == "your_own":
        return OWN.format(program=program, output=_block("text", output))
    tool = next(tool for tool in tools() if tool.name == name)
    text = "\n".join(tool.text(json.loads(line)) for line in _documents(output))
    return "\n\n".join(
        (
            f"# `{name}`",
            tool.description,
            _arguments(tool),
            "## One real request and its answer",
            program,
            "It prints:",
            _block("json", output),
            "A model reads the same as text:",
            _block("text", text),
            "## What a model's prompt is told",
            tool.get_ai_prompt_instructions(),
            "",
        )
    )


def _documents(output: str) -> list[str]:
    """The JSON documents in an output: one of several lines, or one a line."""
    return [output] if output.startswith("{\n") else output.splitlines()


def _arguments(tool: AITool) -> str:
    schema = tool.parameters_schema
    if not schema["properties"]:
        return "It takes no arguments."
    rows = ["| argument | type | default | |", "|---|---|---|---|"]
    for name, part in schema["properties"].items():
        kind = part["type"] if isinstance(part["type"], str) else " or ".join(part["type"])
        default = (
            "required"
            if name in schema["required"]
            else f"`{json.dumps(part['default'])}`"
            if "default" in part
            else ""
        )
        rows.append(f"| `{name}` | {kind} | {default} | {part['description'].replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def names() -> list[str]:
    """The pages that there are."""
    return [*(tool.name for tool in tools()), "your_own"]


if __name__ == "__main__":
    for name in names():
        (HERE / f"{name}.md").write_text(page(name), encoding="utf-8")
