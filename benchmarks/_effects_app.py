"""The cockpit for the benchmark of effects: two calls wait, whose effects are stated, late, or never asked for."""

import asyncio
import sys
import time

from tests.in_memory.supervisor import InMemorySupervisor
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.effects import Effects
from whisper_tui.model.errors import Refused
from whisper_tui.tui.app import CockpitApp

COMMANDS = ("echo 'rate = 20' > one.conf; rm -rf many", "bash deploy.sh && echo 'rate = 30' > two.conf")
USUAL_S, LATE_S = 0.005, 0.2


class Stage(InMemorySupervisor):
    """A stage that states effects at once, after as long as they may take, or never."""

    how = "with"

    def __init__(self) -> None:
        super().__init__(time.time)
        self.known_effects: dict[str, Effects] = {}

    async def effects(self, call_id: str) -> Effects:
        """State the effects, or refuse as for a call that has started."""
        if self.how == "without":
            raise Refused("no effects are stated")
        # The supervisor is another process: the cockpit's own must not pay for looking at the disk.
        if call_id not in self.known_effects:
            self.known_effects[call_id] = await super().effects(call_id)
        await asyncio.sleep(LATE_S if self.how == "late" else USUAL_S)
        return self.known_effects[call_id]


def main() -> None:
    """Arguments: `with`, `without` or `late`, and the workspace."""
    stage = Stage()
    stage.how = sys.argv[1]
    session = stage.open("bench", sys.argv[2])
    for command in COMMANDS:
        spec = CommandSpec(command=Shell(text=command), cwd=sys.argv[2])
        stage.ask(CallRequest(session_id=session.id, tool="run", arguments={}, spec=spec))
    CockpitApp(stage, user="bench").run()


main()
