"""Processes that were held still when their keeper was killed: nobody else is left who would let them go on."""

import signal

from whisper_tui.model.run import ProcessIdentity
from whisper_tui.supervisor.keeper.processes import Descendants, boot_id, is_stopped, look_at
from whisper_tui.supervisor.keeper.signals import send_to


def let_go_on(leader: ProcessIdentity) -> None:
    """Continue what descends from the leader of a run, and then the leader itself, if it is still the one that was."""
    seen = look_at(leader.pid) if leader.boot_id == boot_id() else None
    if seen is None or seen.start != leader.start_time:
        return
    for each in (*Descendants(leader.pid, adopts=False).now(), seen):
        if is_stopped(each.pid):
            send_to(each, signal.SIGCONT)
