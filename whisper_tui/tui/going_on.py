"""Which call is looked at after one was decided."""

from whisper_tui.tui.roster import Roster
from whisper_tui.tui.sections import Place
from whisper_tui.tui.widgets.call_list import CallList


def go_on(calls: CallList, roster: Roster, call_id: str) -> None:
    """This call is decided: go on to the next one that waits; if there is none, stay and watch it."""
    if calls.selected != call_id:
        return
    calls.select(call_id, by_hand=True)
    place = roster.place_of(call_id)
    if place is not None and place.section == "waiting":
        below = roster.step(call_id, 1) if place.row + 1 < roster.count("waiting") else None
        following = below or (roster.step(call_id, -1) if place.row else None)
    else:
        following = roster.next_waiting(place)
    if following is not None and following != call_id:
        calls.select(following, by_hand=False)


def stay_with_the_queue(calls: CallList, roster: Roster, before: Place | None) -> None:
    """The selected call stood at `before`. If it was decided elsewhere, go on to the next one that waits."""
    if calls.selected is None or before is None or before.section != "waiting" or not roster.count("waiting"):
        return
    place = roster.place_of(calls.selected)
    if place is not None and place.section != "waiting":
        calls.select(roster.next_waiting(before), by_hand=False)
