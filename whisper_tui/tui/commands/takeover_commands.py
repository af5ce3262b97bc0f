"""A supervisor of another version: reported in a bar, and replaced on demand."""

from collections.abc import Awaitable, Callable

from textual.content import Content
from textual.widgets import Static

from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, in_force

COMMANDS: tuple[Command, ...] = (
    Command(
        "hand-over",
        "V",
        "Hand over",
        "Replace the supervisor by this version; commands keep running.",
        "Cockpit",
    ),
)


class VersionBar(Static):
    """A bar that names both versions and the key that replaces the supervisor."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.display = False

    def say(self, text: str) -> None:
        """Show a text."""
        self.update(Content(f"⇅ {visible(text)}"))
        self.display = True


TakeOver = Callable[[], Awaitable[None]]
"""Replaces the running supervisor by one of this version. Raises `WhisperError`."""


class TakeoverCommands:
    """Compares versions after each connection, and carries out the command `hand-over`."""

    def __init__(self, cockpit: CockpitContext, take_over: TakeOver | None) -> None:
        """`take_over`: None if this cockpit cannot replace its supervisor."""
        self._cockpit = cockpit
        self._take_over = take_over
        self._bar = VersionBar(id="versions")

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"hand-over": self.hand_over}

    def connected(self) -> None:
        """Compare the version of the supervisor that is connected now."""
        self._bar.display = False
        if self._take_over is not None:
            # exclusive: the answer of a former connection must not be compared after that of the present one.
            self._cockpit.screen.run_worker(self._compare(), group="versions", exclusive=True)

    def lost(self, error: WhisperError) -> None:
        """Offer to replace the supervisor if the connection failed because of its version."""
        if isinstance(error, OtherVersion) and self._take_over is not None:
            # The hello has failed, so the version of the supervisor is not known.
            self._offer(f"This cockpit is whisper_tui {__version__}, and the supervisor speaks another protocol.")

    async def hand_over(self) -> None:
        """Replace the supervisor; the cockpit reconnects by itself."""
        if self._take_over is None or not self._bar.display:
            self._cockpit.tell("The supervisor already has the version of this cockpit.")
            return
        self._cockpit.screen.run_worker(self._hand_over(self._take_over), group="handing over", exclusive=True)

    async def _hand_over(self, take_over: TakeOver) -> None:
        try:
            await take_over()
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        else:
            self._cockpit.tell(f"The supervisor is now whisper_tui {__version__}; commands kept running.")

    async def _compare(self) -> None:
        try:
            theirs = (await self._cockpit.supervision.status()).version
        except WhisperError:
            return  # BoardFollower reports a lost connection.
        if theirs != __version__:
            self._offer(f"The supervisor is whisper_tui {theirs}, and this cockpit is {__version__}.")

    def _offer(self, difference: str) -> None:
        if not self._bar.is_attached:
            self._cockpit.screen.mount(self._bar, after="#banner")
        key = in_force(self._cockpit.screen.app).by_id("hand-over").key_name or "The command Hand over"
        self._bar.say(f"{difference} {key} replaces the supervisor by {__version__}; commands keep running.")
