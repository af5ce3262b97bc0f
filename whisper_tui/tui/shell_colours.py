"""How the parts of a shell's text look in the editor, in the colours of the theme."""

from collections.abc import Mapping

from rich.style import Style
from textual.widgets.text_area import TextAreaTheme

NAME = "whisper"

_PARTS: dict[str, tuple[str, str]] = {
    "string": ("success", ""),
    "function": ("primary", "bold"),
    "property": ("edited", ""),
    "keyword": ("waiting", "bold"),
    "comment": ("muted", "italic"),
    "number": ("behind", ""),
    "operator": ("running", "bold"),
    "constant": ("foreground", "underline"),
    "embedded": ("risk", ""),
}
"""Parts of the grammar: the colour of the theme that each has, and how it is written besides."""


def shell_theme(colours: Mapping[str, str]) -> TextAreaTheme:
    """The look of a shell's text; `colours` by the names that style sheets use."""
    return TextAreaTheme(
        name=NAME,
        syntax_styles={
            part: Style.parse(f"{written} {colours[colour]}".strip()) for part, (colour, written) in _PARTS.items()
        },
    )
