"""What a command of the cockpit is, and for which calls it means anything."""

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

from whisper_tui.model.state import CallRecord, Ended, Running, Waiting
from whisper_tui.tui.commands.keys import written

Need = Literal["nothing", "call", "waiting", "alive", "reads", "ran", "terminal", "ended", "blocked"]
"""What must be selected: nothing, any call, one that waits for a decision, one of which something is alive, one that
reads what is typed, one that has been started, one that runs in a terminal, one that is over, one that failed and
that its sandbox kept from something."""

Group = Literal["Decide", "Run", "Move", "View", "Cockpit", "Output", "History", "Rules"]


@dataclass(frozen=True)
class Command:
    """One thing that a person can tell the cockpit to do."""

    id: str
    """Stable: keys are remapped by it."""
    key: str
    label: str
    """One or two words, for the footer and for buttons."""
    help: str
    """One sentence, for the help, the palette and the documentation."""
    group: Group
    need: Need = "nothing"
    in_footer: bool = False
    """What has a button of its own needs no place there."""

    def binding(self) -> Binding:
        """The key as Textual knows it."""
        action = f"command('{self.id}')"
        return Binding(self.key, action, self.label, show=self.in_footer, tooltip=self.help, id=f"cockpit.{self.id}")

    @property
    def key_name(self) -> str:
        """The key as it is written for people. Empty: it has none."""
        return written(self.key)


def available(command: Command, record: CallRecord | None) -> bool:
    """Whether a command means anything for the call that is selected."""
    match command.need:
        case "nothing":
            return True
        case "call":
            return record is not None
        case "waiting":
            return record is not None and isinstance(record.state, Waiting)
        case "alive":
            return record is not None and is_alive(record)
        case "reads":
            return record is not None and reads_input(record)
        case "ran":
            return record is not None and record.attempt is not None
        case "terminal":
            return record is not None and record.spec.tty and isinstance(record.state, Running)
        case "ended":
            return record is not None and isinstance(record.state, Ended)
        case "blocked":
            return record is not None and record.failed_in_sandbox


def why_not(command: Command, record: CallRecord | None) -> str:
    """Why a command means nothing for the call that is selected, in a sentence."""
    if record is None:
        return f"{command.label} needs a call, and there is none."
    reasons = {
        "waiting": f"call {record.id} does not wait for a decision",
        "alive": f"nothing of call {record.id} runs",
        "reads": f"call {record.id} does not run, or takes no input",
        "ran": f"call {record.id} has not run",
        "terminal": f"call {record.id} does not run in a terminal",
        "blocked": f"call {record.id} did not fail because of a sandbox",
        "ended": f"call {record.id} has not ended",
    }
    return f"{command.label} is not possible: {reasons[command.need]}."


def reads_input(record: CallRecord) -> bool:
    """Whether the command runs and can be typed to."""
    return isinstance(record.state, Running) and record.takes_input


def is_alive(record: CallRecord) -> bool:
    """Whether there is a process that a signal could reach."""
    return isinstance(record.state, Running) or (isinstance(record.state, Ended) and not record.state.settled)
