"""Hints for somebody new, each shown once in a lifetime: undo, typing into a terminal, allowing for good."""

import time
from collections.abc import Callable, Collection
from typing import Literal, get_args

from textual.widget import Widget

from whisper_tui.model.state import CallRecord, Running
from whisper_tui.tui.command_definition import Keymap, in_force

Hint = Literal["undo", "terminal", "always-allow"]
HINTS: tuple[Hint, ...] = get_args(Hint)
SHOWN_S = 12.0


def hint_text(hint: Hint, keys: Keymap) -> str:
    """Return the text of a hint with the keys in force; empty if its key was taken away."""
    undo, terminal, always, revoke = (
        keys.by_id(id_).key_name for id_ in ("undo", "terminal", "approve-always", "revoke-latest")
    )
    match hint:
        case "undo":
            return f"{undo} undoes an approval, while it counts down and until its command has started." if undo else ""
        case "terminal":
            return f"{terminal} types into the terminal of this command; Ctrl+] comes back." if terminal else ""
        case "always-allow":
            what = f"{always} approves this call and saves a rule that allows commands like it"
            return f"{what}; {revoke} revokes the latest standing approval." if always else ""


class FirstHints:
    """Shows each hint the first time that it is about what is on the screen."""

    def __init__(self, known: Collection[str] = HINTS, remember: Callable[[str], object] = lambda _hint: None) -> None:
        """`known` were shown before; `remember` keeps a hint among them."""
        self._known = set(known)
        self._remember = remember
        self._next_at = 0.0

    def has(self, hint: Hint) -> bool:
        """True if a hint was not shown yet."""
        return hint not in self._known

    def about(self, widget: Widget, record: CallRecord, *, offers_rule: bool) -> None:
        """Show a hint about the selected call, if there is one that was not shown."""
        if offers_rule:
            self.show(widget, "always-allow")
        if record.spec.tty and isinstance(record.state, Running):
            self.show(widget, "terminal")

    def show(self, widget: Widget, hint: Hint) -> None:
        """Show a hint as a toast, unless it was shown before or another one is on the screen."""
        if not self.has(hint) or time.monotonic() < self._next_at:
            return
        if not (text := hint_text(hint, in_force(widget.app))):
            return
        self._known.add(hint)
        self._next_at = time.monotonic() + SHOWN_S
        self._remember(hint)
        widget.notify(text, title="Hint", timeout=SHOWN_S, markup=False)
