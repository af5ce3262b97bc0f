"""Text of agents inside Markdown: in code that it cannot leave, without anything that a terminal or a page obeys."""

import re
import shlex

from whisper_tui.model.command import Argv, Command
from whisper_tui.model.text import visible

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]",
    re.DOTALL,
)


def command_text(command: Command) -> str:
    """An argv as one would type it, or the text for a shell, as it is."""
    return shlex.join(command.words()) if isinstance(command, Argv) else command.text


def in_code(text: str) -> str:
    """Text as code within a line. Nothing in it is a link, a tag, a mention or markup."""
    shown = visible(text) or " "
    mark = "`" * (_longest_run(shown) + 1)
    edge = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{mark}{edge}{shown}{edge}{mark}"


def block(text: str, language: str = "text") -> str:
    """Text as a block of code of its own, whatever it holds."""
    shown = visible(text, keep_lines=True)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}\n"


def plain_output(data: bytes) -> str:
    """Output without colours; of a line that was overwritten, as progress bars do, what was left in the end."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
