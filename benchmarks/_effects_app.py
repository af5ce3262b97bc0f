"""The cockpit for the benchmark of cards: two commands wait, whose effects are stated or not, or two edits of files."""

import asyncio
import sys
import time
from pathlib import Path

from tests.in_memory.supervisor import InMemorySupervisor
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits, FileVersions, Shell, WriteFile
from whisper_tui.model.effects import Effects
from whisper_tui.model.errors import Refused
from whisper_tui.tui.app import CockpitApp

COMMANDS = ("echo 'rate = 20' > one.conf; rm -rf many", "bash deploy.sh && echo 'rate = 30' > two.conf")
USUAL_S, LATE_S = 0.005, 0.2
LONG = [f"number {number} of a list that is as wide as most\n" for number in range(44_000)]
"""The lines of a file of two megabytes."""
SHORT = LONG[:40]
EDITS: dict[str, tuple[list[str], list[str]]] = {
    "edit": (SHORT, [*SHORT[:20], "marker\n", *SHORT[21:]]),
    "edit-2mb": (LONG, [*LONG[:20], "marker\n", *LONG[21:]]),
    "edit-5000": ([*(f"marker {number}\n" for number in range(5000)), *LONG[5000:6000]], LONG[:6000]),
}
"""The contents of a file before and after an edit."""


class EffectsSupervisor(InMemorySupervisor):
    """A supervisor that states effects at once, after as long as they may take, or never."""

    how = "with"

    def __init__(self) -> None:
        super().__init__(time.time)
        self.known_effects: dict[str, Effects] = {}
        self.known_contents: dict[str, tuple[FileVersions, ...]] = {}

    async def effects(self, call_id: str) -> Effects:
        """State the effects, or refuse as for a call that has started."""
        if self.how == "without":
            raise Refused("no effects are stated")
        # The supervisor is another process: the cockpit's own must not pay for looking at the disk.
        if call_id not in self.known_effects:
            self.known_effects[call_id] = await super().effects(call_id)
        await asyncio.sleep(LATE_S if self.how == "late" else USUAL_S)
        return self.known_effects[call_id]

    async def file_versions(self, call_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of an edit's files, read before."""
        await asyncio.sleep(USUAL_S)
        return self.known_contents[call_id]


def main() -> None:
    """Arguments: `with`, `without`, `late` or the name of an edit, and the workspace."""
    supervisor = EffectsSupervisor()
    supervisor.how = sys.argv[1]
    session = supervisor.open("bench", sys.argv[2])
    for command in COMMANDS if supervisor.how not in EDITS else ():
        spec = CommandSpec(command=Shell(text=command), cwd=sys.argv[2])
        supervisor.ask(CallRequest(session_id=session.id, tool="run", arguments={}, spec=spec))
    for number, how in enumerate(("edit", supervisor.how) if supervisor.how in EDITS else ()):
        path = Path(sys.argv[2]) / f"{supervisor.how}-{number}.txt"
        before, after = ("".join(lines) for lines in EDITS[how])
        path.write_text(before)
        # Only the second one has the word that the benchmark waits for.
        change = WriteFile(path=str(path), content=after if number else after.replace("marker", "other"))
        spec = CommandSpec(command=FileEdits(tool="Write", changes=(change,)), cwd=sys.argv[2])
        call_id = supervisor.ask(CallRequest(session_id=session.id, tool="Write", arguments={}, spec=spec))
        supervisor.known_contents[call_id] = supervisor.contents_now(spec, session.id)
    CockpitApp(supervisor, user="bench").run()


main()
