"""A supervisor of another version: told in a line over everything, and taken over from when the human wants it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion, WhisperError
from whisper_tui.tui.commands import BY_ID
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.widgets.version_bar import VersionBar
from whisper_tui.tui.words import told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

TakeOver = Callable[[], Awaitable[None]]
"""Has a supervisor of this program's version take over from the one that runs. Raises `WhisperError`."""


class HandingOver:
    """Compares versions whenever there is a connection."""

    def __init__(self, screen: "CockpitScreen", take_over: TakeOver | None) -> None:
        """`take_over`: None where the supervisor is not one that can be replaced from here."""
        self._screen = screen
        self._take_over = take_over
        self._bar = VersionBar(id="versions")

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"hand-over": self.hand_over}

    def connected(self) -> None:
        """There is a connection: look whose it is."""
        self._bar.display = False
        if self._take_over is not None:
            self._screen.run_worker(self._compare(), group="versions", exclusive=True)

    def lost(self, error: WhisperError) -> None:
        """There is none, perhaps because the supervisor is not understood."""
        if isinstance(error, OtherVersion) and self._take_over is not None:
            self._offer(f"This cockpit is whisper_tui {__version__}, and the supervisor speaks another protocol.")

    async def hand_over(self) -> None:
        """Have a supervisor of this version take over; the connection comes back by itself."""
        if self._take_over is None or not self._bar.display:
            self._screen.tell("The supervisor is of the version of this cockpit.")
            return
        self._screen.run_worker(self._hand_over(self._take_over), group="handing over", exclusive=True)

    async def _hand_over(self, take_over: TakeOver) -> None:
        try:
            await take_over()
        except WhisperError as error:
            self._screen.tell(told(error), severity="error")
        else:
            self._screen.tell(f"A supervisor of whisper_tui {__version__} has taken over; what ran goes on.")

    async def _compare(self) -> None:
        try:
            theirs = (await self._screen.supervision.status()).version
        except WhisperError:
            return  # Whoever follows the events tells of it.
        if theirs != __version__:
            self._offer(f"The supervisor is whisper_tui {theirs}, and this cockpit is {__version__}.")

    def _offer(self, difference: str) -> None:
        if not self._bar.is_attached:
            self._screen.mount(self._bar, after="#banner")
        key = in_force(self._screen.app).command(BY_ID["hand-over"]).key_name or "The command Hand over"
        self._bar.say(f"{difference} {key} has a supervisor of {__version__} take over; what runs goes on.")
