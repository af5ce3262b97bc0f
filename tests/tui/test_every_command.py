"""Every command of the cockpit is reached by its keys, in the palette and with the mouse, and by nothing it is not."""

from collections.abc import Callable, Iterable
from functools import partial

import pytest
from textual.command import CommandList, DiscoveryHit
from textual.screen import Screen
from textual.widgets import Button
from textual.widgets._footer import FooterKey

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.edit_scenes import edit, folder
from tests.tui.past import a_month, history
from tests.tui.preview_scenes import applied, apply, begin_preview, end_preview, tidying
from tests.tui.scenes import ME, Scenario
from tests.tui.test_rules_screen import Book
from tests.tui.test_sandboxed import confined
from whisper_tui.model.call import WriteFile
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided
from whisper_tui.model.run import Blocked, BlockedAttempt
from whisper_tui.tui.app import CockpitCommands
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.command_definition import Command, available
from whisper_tui.tui.commands.all_commands import COMMANDS
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.screens.history_screen import HISTORY
from whisper_tui.tui.screens.rules_screen import RULES, RulesScreen

WIDE = (460, 40)
"""Room for every button."""
ELSEWHERE = {
    *("up", "down", "scroll-up", "scroll-down", "page-call-up", "page-call-down", "top", "bottom"),
    *("focus-next", "focus-previous", "group", "clear-filter", "undo", "review"),
    *("theme", "choose-theme", "hand-over", "do-not-disturb", "reveal", "talk"),
    *("next-running", "next-background", "next-failed", "next-severe", "jump-to-risk"),
    *("next-hunk", "previous-hunk", "next-file", "previous-file"),
    *("zoom", "zoom-out", "why", "settings", "unasked", "review-unasked", "set-aside"),
}
"""Commands with no button of their own: the wheel scrolls, clicks select, focus and group, a line offers to undo
and to review when there is something to, output has a button to enlarge it, the dialog about more has a button for a
sandbox; the rest is rare. The palette has them all."""
WAITS, RUNS, ENDED, BLOCKED, EDIT, PREVIEWED, APPLIED, QUEUED = "3", "2", "1", "4", "5", "6", "7", "8"


def one_of_each() -> Scenario:
    """A call that is over, one that reads in a terminal, a waiting, a blocked and a queued one, an edit, previews."""
    scenario = Scenario.begin()
    over = scenario.ask("build")
    scenario.approve(over)
    scenario.print(over, "build")
    scenario.end(over)
    scenario.approve(scenario.ask("tag"))
    scenario.ask("test")
    blocked = confined(scenario, "fix")
    scenario.supervisor.finish(blocked, Exited(code=1), blocked=Blocked(attempts=(BlockedAttempt(what="network"),)))
    root = folder()
    edit(scenario, root, WriteFile(path=str(root / "new.txt"), content="new\n"))
    for _ in (PREVIEWED, APPLIED):
        _, call_id = tidying(scenario)
        begin_preview(scenario, call_id)
        end_preview(scenario, call_id)
    apply(scenario, APPLIED)
    queued = scenario.ask("test")
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=queued, decision=Approve(), by=ME))
    return scenario


class CommandAccess:
    """Tries the ways to the commands of a screen; none of them is carried out, only noted."""

    def __init__(self, cockpit: Cockpit, screen: CockpitScreen | CommandScreen) -> None:
        self.cockpit = cockpit
        self.screen = screen
        self.done: list[str] = []
        screen.does = {id_: partial(self.done.append, id_) for id_ in screen.does}

    async def leads_to(self, command: Command, way: Callable[[], object]) -> None:
        self.done.clear()
        await way()  # type: ignore[misc]
        await self.cockpit.until(lambda: self.done)
        assert self.done == [command.id]

    async def by_key(self, commands: Iterable[Command]) -> None:
        for command in commands:
            for key in command.key.split(","):
                await self.leads_to(command, partial(self.cockpit.press, key))

    async def in_the_palette(self, commands: Iterable[Command]) -> None:
        hits = [hit async for hit in CockpitCommands(self.screen).discover() if isinstance(hit, DiscoveryHit)]
        for command, hit in zip(commands, hits, strict=True):
            assert hit.text == f"{command.label}  ({command.key_name})"
            self.done.clear()
            await hit.command()
            assert self.done == [command.id]

    async def by_mouse(self, commands: Iterable[Command]) -> set[str]:
        """Click what the screen has for each command. Returns those that it has only in the palette."""
        beyond = set()
        for command in commands:
            found = place(self.screen, command)
            if found is None:
                beyond.add(command.id)
            else:
                await self.cockpit.until(lambda found=found: not found.has_class("-active"))
                await self.leads_to(command, partial(self.cockpit.pilot.click, found))
        return beyond

    async def in_the_palette_by_mouse(self, commands: Iterable[Command], opens: str) -> None:
        """Open the palette with a click, see as many commands as there are, and click the first."""
        first, *rest = commands
        await self.cockpit.click(opens)
        await self.cockpit.until(lambda: self.cockpit.app.screen is not self.screen)
        listed = self.cockpit.app.screen.query_one(CommandList)
        await self.cockpit.until(lambda: listed.option_count == 1 + len(rest) and listed.region)
        await self.leads_to(first, partial(self.cockpit.pilot.click, listed, offset=(4, 1)))
        await self.cockpit.until(lambda: self.cockpit.app.screen is self.screen)


def place(screen: Screen[None], command: Command) -> Button | FooterKey | None:
    """Where a command can be clicked: a button, or its key in the footer."""
    buttons = (each for each in screen.query(Button) if (each.id or "").partition("-")[2] == command.id)
    keys = (each for each in screen.query(FooterKey) if each.action == f"command('{command.id}')")
    return next((each for each in (*buttons, *keys) if each.region), None)


def meant(cockpit: Cockpit) -> list[Command]:
    """What can be done with the call that is selected."""
    return [command for command in COMMANDS if available(command, cockpit.shown)]


@pytest.mark.slow
async def test_every_command_of_the_cockpit_has_keys_a_place_in_the_palette_and_one_for_the_mouse() -> None:
    tried: set[str] = set()
    async with open_cockpit(one_of_each(), size=WIDE) as cockpit:
        ways = CommandAccess(cockpit, cockpit.screen)
        for call_id in (WAITS, RUNS, ENDED, BLOCKED, EDIT, PREVIEWED, APPLIED, QUEUED):
            await cockpit.select(call_id)
            await cockpit.pilot.pause()
            commands = meant(cockpit)
            new = [command for command in commands if command.id not in tried]
            await ways.by_key(new)
            await ways.in_the_palette(commands)
            assert await ways.by_mouse(new) <= ELSEWHERE
            tried |= {command.id for command in new}
        assert tried == set(cockpit.screen.does)
        await ways.in_the_palette_by_mouse(meant(cockpit), "#call-actions .bar-more")


@pytest.mark.slow
async def test_a_command_that_does_not_apply_is_unreachable() -> None:
    async with open_cockpit(one_of_each(), size=WIDE) as cockpit:
        ways = CommandAccess(cockpit, cockpit.screen)
        await cockpit.select(ENDED)
        await cockpit.pilot.pause()
        useless = [command for command in COMMANDS if not available(command, cockpit.shown)]
        assert {command.id for command in useless} >= {"approve", "deny", "signal", "type", "terminal"}
        for command in useless:
            assert place(cockpit.screen, command) is None
            await cockpit.press(*command.key.split(","))
        assert ways.done == []


@pytest.mark.slow
async def test_every_command_of_the_history_has_keys_a_place_in_the_palette_and_one_for_the_mouse() -> None:
    async with open_cockpit(a_month(), size=WIDE) as cockpit, history(cockpit) as screen:
        await cockpit.press("down")
        await cockpit.until(lambda: screen.means_something("history-play"))
        ways = CommandAccess(cockpit, screen)
        ran = [command for command in HISTORY if screen.means_something(command.id)]
        await ways.by_key(ran)
        await ways.in_the_palette(ran)
        hunks = {f"history-{way}-{what}" for way in ("next", "previous") for what in ("hunk", "file")}
        assert await ways.by_mouse(ran) == {"history-reload", "history-help", "history-reveal", *hunks}
        await ways.in_the_palette_by_mouse(ran, "Footer .-command-palette")
    async with open_cockpit(applied(), size=WIDE) as cockpit, history(cockpit) as screen:
        await cockpit.until(lambda: screen.means_something("history-take-back"))
        ways = CommandAccess(cockpit, screen)
        changed = [command for command in HISTORY if screen.means_something(command.id)]
        only = [command for command in changed if command not in ran]
        several = {"history-machine"}  # test_hosts presses its key
        assert {command.id for command in (*ran, *only)} == set(screen.does) - several
        await ways.by_key(only)
        await ways.in_the_palette(changed)


@pytest.mark.slow
async def test_every_command_of_the_rules_has_keys_a_place_in_the_palette_and_one_for_the_mouse() -> None:
    async with open_cockpit(a_month(), rule_book=Book()) as cockpit:
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        screen = cockpit.app.screen
        assert isinstance(screen, RulesScreen)
        await cockpit.sees("git status")
        ways = CommandAccess(cockpit, screen)
        await ways.by_key(RULES)
        await ways.in_the_palette(RULES)
        assert await ways.by_mouse(RULES) == {"rules-help", "rules-readers", "rules-starter"}
        await ways.in_the_palette_by_mouse(RULES, "Footer .-command-palette")
