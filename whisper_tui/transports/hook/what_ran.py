"""Compares what agents' programs say they ran with what was approved, and raises an alarm about another call.

A client runs all hooks of an event and takes the answer of one. So another hook or plugin can replace a command after
its approval, and nothing but the events after a tool, and the ticket that is not shown, tells of it (decision 34).

Whatever comes here may be forged by an agent. So nothing here approves, ends or hides anything: an event that fits an
approval only fails to raise an alarm, and never keeps a later one from being compared.
"""

import asyncio
import json
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from whisper_tui.agents.agent_tools import Content
from whisper_tui.agents.done_calls import Different, difference
from whisper_tui.agents.hook_formats import DoneCall, HookFormat, HookRequest
from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import (
    LONGEST_ALARM,
    Alarm,
    CallRecord,
    Held,
    Queued,
    Running,
    Starting,
    Unjudged,
    Waiting,
)
from whisper_tui.model.text import one_line_beginning
from whisper_tui.tools.agent_text import command_line

_log = logging.getLogger(__name__)

SHOWN_WITHIN_S = 30.0
"""Seconds after the answer within which a ticket is shown, if nothing else keeps the agent's program.

Programs start a command at once, and `exec` takes a tenth of a second, on a busy machine a few. What else may take its
time is another hook of the same call: then the alarm comes early, and no longer holds once the ticket is shown.
"""

SHOWN_AFTER_END_S = 10.0
"""The same after the program has said that the call is over: a command in the background may start a moment later."""

LOOK_AGAIN_S = 10.0
"""Seconds between two looks at a ticket while other calls of its session keep the program."""

LOOKS = 360
"""Looks at most: after an hour, other calls are no reason any more."""

MOST_CALLS, MOST_BYTES = 100, 8 * 1024 * 1024
"""Calls of a session that are remembered, and bytes of their arguments: an event follows its call soon."""

MOST_SESSIONS = 200
"""Sessions whose calls are remembered."""

TICKET = re.compile(r"\bexec (?P<call>[0-9]{1,18})-(?P<secret>[0-9a-f]+)\b")
"""The ticket in a command that has replaced an agent's own."""

MOST_SHOWN = 300
"""Characters of a command that the model is shown."""

RaiseAlarm = Callable[[str, Alarm], None]
"""Records an alarm about the call with this id. Raises `WhisperError`."""


@dataclass(eq=False)
class AllowedCall:
    """A call that a hook has allowed."""

    call_id: str
    """Ours."""
    client_id: str | None
    """The client's. None: it sends none."""
    tool: str
    arguments: Content
    """Those that the client was given."""
    words: str
    """The command as it was approved."""
    has_ticket: bool
    """True if `exec` runs it, which shows its ticket."""
    size: int
    shown: bool = False
    """True once its ticket was shown, whatever came of that."""
    over: bool = False
    """True once an event was about it."""
    asked_about: bool = False
    """True if the client asks its own user about it, who may take any time."""
    looks: int = 0


class WhatRan:
    """The calls that were allowed lately, by session, and the comparison with what ran."""

    def __init__(
        self,
        supervision: Supervision,
        raise_alarm: RaiseAlarm,
        *,
        shown_within_s: float = SHOWN_WITHIN_S,
        shown_after_end_s: float = SHOWN_AFTER_END_S,
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        self._supervision = supervision
        self._raise = raise_alarm
        self._shown_within_s = shown_within_s
        self._shown_after_end_s = shown_after_end_s
        self._look_again_s = look_again_s
        self._sessions: OrderedDict[tuple[str, str], deque[AllowedCall]] = OrderedDict()
        self._by_id: WeakValueDictionary[str, AllowedCall] = WeakValueDictionary()
        self._held: OrderedDict[tuple[str, str], deque[str]] = OrderedDict()
        """Commands that came to the gate in the place of others, by session: they did not run without a decision."""
        self._tasks: set[asyncio.Task[None]] = set()

    def allowed(self, client: HookFormat, asked: HookRequest, arguments: Content | None, record: CallRecord) -> None:
        """Remember a call that is allowed with these arguments. None: with its own."""
        given = asked.tool_input if arguments is None else arguments
        call = AllowedCall(
            call_id=record.id,
            client_id=asked.call_id,
            tool=asked.tool,
            arguments=given,
            words=_short(command_line(record.spec)),
            has_ticket=isinstance(record.state, Held),
            size=len(json.dumps(given)),
        )
        calls = self._sessions.setdefault((client.name, asked.session), deque())
        self._sessions.move_to_end((client.name, asked.session))
        calls.append(call)
        while len(calls) > MOST_CALLS or (len(calls) > 1 and sum(each.size for each in calls) > MOST_BYTES):
            calls.popleft()
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        self._by_id[call.call_id] = call
        if call.has_ticket:
            self._look_after(self._shown_within_s, call)

    def shown(self, call_id: str) -> None:
        """Note that the ticket of a call was shown."""
        if (call := self._by_id.get(call_id)) is not None:
            call.shown = True

    def held_at_gate(self, client: HookFormat, session: str, command: str) -> None:
        """Note that a command without an approval has become a call of its own, for one event about it."""
        self._held.setdefault((client.name, session), deque(maxlen=MOST_CALLS)).append(command)
        self._held.move_to_end((client.name, session))
        if len(self._held) > MOST_SESSIONS:
            self._held.popitem(last=False)

    def asked_itself(self, client: HookFormat, session: str, tool: str, tool_input: object) -> None:
        """Note that a client asks its own user about a call."""
        for call in self._sessions.get((client.name, session), ()):
            same = isinstance(tool_input, dict) and client.subject(tool, tool_input) == client.subject(
                call.tool, call.arguments
            )
            if call.tool == tool and same:
                call.asked_about = True

    def compare(self, client: HookFormat, done: DoneCall, *, is_ticket: bool) -> str:
        """Compare a call that is over. Return the words for the model if something else ran; otherwise nothing.

        `is_ticket`: the command shows a ticket of ours and does nothing else. Raises `WhisperError` if the alarm
        cannot be recorded.
        """
        calls = self._candidates(client, done)
        differences = [(call, difference(client, call.arguments, done)) for call in calls]
        for call in (call for call, different in differences if different is None):
            call.over = True
            if call.has_ticket and not call.shown:
                self._look_after(self._shown_after_end_s, call)
            return ""
        if is_ticket:
            # Of a call that is not remembered, because the supervisor was restarted meanwhile: `exec` ran what was
            # approved, or refused.
            return ""
        # The ids of some models begin again in each answer: the newest call is meant. Without ids it is the oldest of
        # those that have not been carried out.
        open_calls = [(call, other) for call, other in differences if not call.over and not call.shown]
        found = differences[-1:] if done.call_id is not None else (open_calls or differences[-1:])
        for call, different in found[:1]:
            call.over = True
            if different is not None and self._was_held(client, done):
                # Its card says that it came in the place of another: the human knows, and has decided.
                call.shown = True
                return ""
            if different is not None:
                return self._replaced(call, different, is_command=client.runs_commands(done.tool))
        return ""

    def _was_held(self, client: HookFormat, done: DoneCall) -> bool:
        held = self._held.get((client.name, done.session), ())
        command = done.tool_input.get("command")
        if not isinstance(command, str) or not client.runs_commands(done.tool) or command not in held:
            return False
        self._held[client.name, done.session].remove(command)
        return True

    def _candidates(self, client: HookFormat, done: DoneCall) -> list[AllowedCall]:
        """Return the calls that an event may be about, oldest first."""
        calls = self._sessions.get((client.name, done.session), ())
        same = [call for call in calls if call.tool == done.tool]
        if done.call_id is None:
            return same
        return [call for call in same if call.client_id == done.call_id]

    def _replaced(self, call: AllowedCall, different: Different, *, is_command: bool) -> str:
        # A ticket is a secret for as long as it has not been shown.
        approved = call.words if is_command else different.allowed
        made = TICKET.sub(r"exec \g<call>-…", different.made)
        self._raise(call.call_id, Alarm(kind="replaced", approved=_short(approved), ran=_short(made)))
        return (
            "whisper_tui: something else was run than what was approved for this call. Another hook or plugin of this "
            "program has replaced it. The human has been alerted; tell the user about it and do not go on as if it had "
            f"been approved. Approved: {one_line_beginning(approved, MOST_SHOWN)}. "
            f"What ran: {one_line_beginning(made, MOST_SHOWN)}"
        )

    def _look_after(self, seconds: float, call: AllowedCall) -> None:
        asyncio.get_running_loop().call_later(seconds, self._look, call)

    def _look(self, call: AllowedCall) -> None:
        if not call.shown:
            task = asyncio.create_task(self._look_at(call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _look_at(self, call: AllowedCall) -> None:
        """Raise an alarm if the ticket of a call was not shown although nothing else explains it."""
        try:
            record = await self._supervision.record(call.call_id)
            # The call of an agent that is gone is withdrawn by now.
            if call.shown or not isinstance(record.state, Held) or record.alarms:
                return
            if not call.over and (call.asked_about or await self._is_kept(call, record)):
                call.looks += 1
                if call.looks < LOOKS and not call.asked_about:
                    self._look_after(self._look_again_s, call)
                return
            self._raise(call.call_id, Alarm(kind="missing", approved=_short(record.spec.command.text)))
        except WhisperError as error:
            _log.warning("call %s: its ticket was not looked at: %s", call.call_id, error.message)

    async def _is_kept(self, call: AllowedCall, record: CallRecord) -> bool:
        """True if another call of its session may keep the agent's program from starting it."""
        query = HistoryQuery(session_id=record.call.session_id, open_only=True, limit=MOST_CALLS)
        others = [each for each in await self._supervision.history(query) if each.id != record.id]
        return any(isinstance(each.state, Unjudged | Waiting | Queued | Starting | Running) for each in others)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_ALARM else f"{text[: LONGEST_ALARM - 1]}…"
