"""Desktop notifications with buttons: one for each call, with Approve only where all that decides can be read there.

They speak org.freedesktop.Notifications over D-Bus. Who may decide is checked as at the supervisor's socket, of the bus
and of the program that shows them: any process of the user could play either (decision 24).
"""

import asyncio
import html
import os
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import CarriedOut, Session
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.errors import AlreadyDecided, WhisperError
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Resolved, is_grave
from whisper_tui.notify.delivery import desktop_environment
from whisper_tui.notify.notification_text import TITLE
from whisper_tui.notify.window_launcher import WindowLauncher
from whisper_tui.present.command_text import call_line, whole_text
from whisper_tui.present.security_text import not_inspected_sentences
from whisper_tui.present.session_text import session_label

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.asyncio import DBusConnection

LONGEST_COMMAND = 200
"""Characters of a command that are shown. A longer one cannot be approved by a button."""
LONGEST_BODY = 500
MOST_SHOWN = 3
"""Notifications with buttons at a time; other calls are only counted."""
GUARD_S = 0.7
"""Seconds for which a new notification takes no click: it may have come under the mouse."""
ANSWER_S = 10.0
"""Seconds within which the bus answers."""

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
OPEN_COCKPIT = "Open the cockpit to approve: "

Objection = Callable[[int], Awaitable[str | None]]
"""Returns why a process may not decide, by its pid. None: it may."""


class BusProblem(WhisperError):
    """The desktop cannot be reached, or cannot be trusted."""

    kind = "bus_problem"


class CallNotice(NamedTuple):
    """A notification about one call."""

    title: str
    body: str
    may_approve: bool


def call_notice(record: CallRecord, session: Session | None) -> CallNotice:
    """Return what a notification says about a waiting call: its command and its risks, secrets masked, bounded."""
    command = record.spec.command
    carried_out = isinstance(command, CarriedOut)
    text = "".join(span.text for span in call_line(record, session)) if carried_out else whole_text(command)
    # The beginning alone is masked, because the patterns would take long on megabytes.
    shown = visible(masked(text[: LONGEST_COMMAND * 2]))
    is_whole = shown == text and len(text) <= LONGEST_COMMAND
    lines = [shown if len(shown) <= LONGEST_COMMAND else f"{shown[: LONGEST_COMMAND - 1]}…"]
    at = f"at {record.spec.place}, " if record.spec.place else ""
    lines.append(f"{at}in {visible(record.spec.cwd)}")
    risks = record.verdict.risks if record.verdict is not None else ()
    lines += [f"{'▲▲' if is_grave(risk) else '▲'} {visible(risk.sentence)}." for risk in risks]
    why = why_not_here(record) or ("" if is_whole else "the command cannot be read in full here")
    body = "\n".join(lines)
    if not why and len(body) > LONGEST_BODY:
        why = "its text does not fit into a notification"
    body = body if len(body) <= LONGEST_BODY else f"{body[: LONGEST_BODY - 1]}…"
    who = session_label(session, record.call.session_id)
    return CallNotice(f"{TITLE}: {visible(who)}", f"{body}\n{OPEN_COCKPIT}{why}." if why else body, not why)


def why_not_here(record: CallRecord) -> str:
    """Return why no button may approve a call, as a clause. Empty: all that decides about it fits a notification."""
    spec, resolved, verdict = record.spec, record.resolved, record.verdict
    if verdict is None or verdict.kind != "ask" or resolved is None:
        return "it is not judged yet"
    if any(is_grave(risk) for risk in verdict.risks):
        return "its risk is severe"
    if not_inspected_sentences(record):
        return "it runs code that nobody has read"
    if isinstance(spec.command, CarriedOut):
        return "its arguments have to be read"
    if spec.environment or spec.tty or resolved.cwd != spec.cwd or resolved.problem:
        return "its directory, its variables or its program are unusual"
    if isinstance(record.state, Waiting) and record.state.returned_because:
        return "it is asked again, because something has changed"
    return "its meaning differs from its text" if _expands(resolved) else ""


def _expands(resolved: Resolved) -> bool:
    """True if the text of a command does not say all that it will run."""
    unclear = (
        each.expanded or each.unknown or each.missing or each.background or None in each.words
        for each in resolved.commands
    )
    return any((resolved.unread, resolved.more, resolved.variables, resolved.sensitive, any(unclear)))


class NotificationBus:
    """A connection to the session's bus, and to the program that shows notifications."""

    def __init__(self, objection: Objection, signal: Callable[[int, str | None], None]) -> None:
        """`signal` gets the id of a notification and its clicked button, or None if it was closed."""
        self._objection = objection
        self._signal = signal
        self._connection: DBusConnection | None = None
        self._replies: dict[int, asyncio.Future[Message]] = {}
        self._receiver: asyncio.Task[None] | None = None
        self._owner = ""
        """The bus's unique name of the program that shows notifications."""
        self.capabilities: tuple[str, ...] = ()

    async def ready(self) -> None:
        """Connect unless that is done, and check who is at the other end. Raises `BusProblem`."""
        if self._connection is not None and self._receiver is not None and not self._receiver.done():
            return
        await self.close()
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._connect()
        except (OSError, EOFError, TimeoutError, ValueError, RuntimeError, StopIteration) as error:
            await self.close()
            raise BusProblem(f"the desktop's bus cannot be reached ({type(error).__name__}: {error})") from error
        except BusProblem:
            await self.close()
            raise

    async def _connect(self) -> None:
        try:
            from jeepney import MatchRule
            from jeepney.bus_messages import message_bus
            from jeepney.io.asyncio import open_dbus_connection
        except ImportError as error:
            raise BusProblem("the extra `desktop` of the package is not installed") from error
        if sys.platform != "linux":
            raise BusProblem("buttons need Linux: elsewhere nobody can tell whose click it is")
        address = desktop_environment(os.environ).get("DBUS_SESSION_BUS_ADDRESS")
        if not address:
            raise BusProblem("there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set")
        self._connection = connection = await open_dbus_connection(address)
        # Whoever runs the bus can forge every message on it.
        peer = connection.writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        await self._check(struct.unpack("3i", peer)[0], "bus")
        self._receiver = asyncio.create_task(self._receive(connection))
        await self._ask(message_bus.AddMatch(MatchRule(type="signal", interface=NAME, path=PATH)))
        answer = await self._ask(self._call("GetCapabilities"))
        self._owner = _sender(answer)
        self.capabilities = tuple(answer.body[0])
        await self.check_owner()

    async def check_owner(self) -> None:
        """Raise `BusProblem` if the program that shows notifications may not decide, or another has taken its place."""
        from jeepney.bus_messages import message_bus

        current = (await self._ask(message_bus.GetNameOwner(NAME))).body[0]
        if current != self._owner:
            raise BusProblem("another program shows notifications now")
        (pid,) = (await self._ask(message_bus.GetConnectionUnixProcessID(self._owner))).body
        await self._check(pid, "program that shows notifications")

    async def _check(self, pid: int, what: str) -> None:
        if (why := await self._objection(pid)) is not None:
            raise BusProblem(f"the desktop's {what} cannot be trusted with decisions: {why}")

    async def show(self, notice: CallNotice, buttons: Sequence[tuple[str, str]], replaces: int = 0) -> int:
        """Show a notification with these buttons, each with its key, and return its id. Raises `BusProblem`."""
        await self.ready()
        await self.check_owner()
        body = html.escape(notice.body, quote=False) if "body-markup" in self.capabilities else notice.body
        words = [word for button in buttons for word in button] if "actions" in self.capabilities else []
        given = ("whisper_tui", replaces, "", notice.title, body, words, {"urgency": ("y", 1)}, 0)
        answer = await self._ask(self._call("Notify", "susssasa{sv}i", given))
        return int(answer.body[0])

    async def hide(self, id_: int) -> None:
        """Close a notification, if it is there."""
        with suppress(BusProblem):
            await self._ask(self._call("CloseNotification", "u", (id_,)))

    async def close(self) -> None:
        """End the connection."""
        receiver, self._receiver = self._receiver, None
        connection, self._connection = self._connection, None
        if receiver is not None:
            receiver.cancel()
            await asyncio.wait([receiver])
        if connection is not None:
            with suppress(OSError):
                await connection.close()

    @staticmethod
    def _call(method: str, signature: str | None = None, body: tuple[Any, ...] = ()) -> "Message":
        from jeepney import DBusAddress, new_method_call

        address: DBusAddress = DBusAddress(PATH, bus_name=NAME, interface=NAME)
        return new_method_call(address, method, signature, body)

    async def _ask(self, message: "Message") -> "Message":
        from jeepney import MessageType

        if self._connection is None:
            raise BusProblem("the connection to the desktop's bus is lost")
        serial = next(self._connection.outgoing_serial)
        self._replies[serial] = reply = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._connection.send(message, serial=serial)
                answer = await reply
        except (OSError, TimeoutError) as error:
            raise BusProblem(f"the desktop does not answer ({type(error).__name__})") from error
        finally:
            del self._replies[serial]
        if answer.header.message_type is MessageType.error:
            raise BusProblem(f"the desktop refuses: {visible(str(answer.body))[:LONGEST_COMMAND]}")
        return answer

    async def _receive(self, connection: "DBusConnection") -> None:
        from jeepney import HeaderFields, MessageType

        try:
            while True:
                message = await connection.receive()
                fields = message.header.fields
                if message.header.message_type is MessageType.signal:
                    self._take(message, str(fields.get(HeaderFields.member)))
                elif not (reply := self._replies.get(fields.get(HeaderFields.reply_serial), _DONE)).done():
                    reply.set_result(message)
        finally:
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(BusProblem("the connection to the desktop's bus is lost"))

    def _take(self, message: "Message", member: str) -> None:
        # Every process on the bus can send this signal; only that of the program itself counts.
        if _sender(message) != self._owner or len(message.body) != 2:
            return
        if member == "ActionInvoked":
            self._signal(int(message.body[0]), str(message.body[1]))
        elif member == "NotificationClosed":
            self._signal(int(message.body[0]), None)


class _Done:
    """Stands for the reply to a message that nobody waits for."""

    @staticmethod
    def done() -> bool:
        return True

    def set_result(self, _message: object) -> None:
        """Do nothing."""


_DONE: Any = _Done()


def _sender(message: "Message") -> str:
    from jeepney import HeaderFields

    return str(message.header.fields.get(HeaderFields.sender, ""))


@dataclass
class _Shown:
    """A notification on the desktop, and the version of the call that it shows."""

    id: int
    digest: str
    at: float
    may_approve: bool
    held: asyncio.Task[None] | None = field(default=None)
    """The approval that can still be undone."""


class DesktopButtons:
    """Shows a notification for each waiting call, and carries out what a human clicks."""

    def __init__(
        self,
        supervision: Supervision,
        board: Board,
        objection: Objection,
        *,
        by: Decider,
        undo_s: float,
        launcher: WindowLauncher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`undo_s`: seconds for which an approval can be undone; 0: none. `launcher` opens the cockpit."""
        self._supervision = supervision
        self._board = board
        self._by = by
        self._undo_s = undo_s
        self._launcher = launcher
        self._clock = clock
        self._bus = NotificationBus(objection, self._signalled)
        self._shown: dict[str, _Shown] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def show(self, records: Sequence[CallRecord]) -> str | None:
        """Show the calls as far as there is room. Return a description of the problem, or None."""
        try:
            await self._bus.ready()
            for record in records:
                if len(self._shown) < MOST_SHOWN and record.id not in self._shown:
                    await self._put(record)
        except BusProblem as problem:
            return problem.message
        return None

    def changed(self, call_id: str) -> None:
        """Note that a call has changed: what is shown about it is replaced or taken away."""
        shown = self._shown.get(call_id)
        if shown is None:
            return
        record = self._board.calls.get(call_id)
        if record is None or not isinstance(record.state, Waiting) or record.aside is not None:
            self._forget(call_id)
        elif record.seen_digest() != shown.digest:
            self._drop_approval(shown)
            self._start(self._put(record, replaces=shown.id))

    async def close(self) -> None:
        """Take all notifications away, and send no approval that can still be undone."""
        for call_id in tuple(self._shown):
            self._forget(call_id)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=ANSWER_S)
        await self._bus.close()

    async def _put(self, record: CallRecord, replaces: int = 0, at: float | None = None) -> None:
        """Show a call. `at`: since when this version of it has been shown. None: from now on."""
        notice = call_notice(record, self._board.sessions.get(record.call.session_id))
        buttons = [("approve", "Approve")] if notice.may_approve else []
        buttons += [("deny", "Deny"), *([("open", "Open")] if self._launcher else [])]
        id_ = await self._bus.show(notice, buttons, replaces)
        self._shown[record.id] = _Shown(
            id_, record.seen_digest(), self._clock() if at is None else at, notice.may_approve
        )
        # It may have been decided while the desktop answered.
        self.changed(record.id)

    def _signalled(self, id_: int, key: str | None) -> None:
        call_id = next((call_id for call_id, shown in self._shown.items() if shown.id == id_), None)
        if call_id is None:
            return
        shown = self._shown[call_id]
        if key is not None:
            self._start(self._clicked(call_id, shown, key))
        elif shown.held is None:
            del self._shown[call_id]

    async def _clicked(self, call_id: str, shown: _Shown, key: str) -> None:
        record = self._board.calls.get(call_id)
        if record is None or not isinstance(record.state, Waiting) or self._shown.get(call_id) is not shown:
            return
        if key == "undo":
            self._drop_approval(shown)
            await self._put(record)
            return
        if self._clock() - shown.at < GUARD_S:
            await self._put(record, at=shown.at if record.seen_digest() == shown.digest else None)
            return
        await self._bus.check_owner()
        if key == "open" and self._launcher is not None:
            await self._open(self._launcher)
        elif key == "deny" and shown.held is None:
            await self._decide(call_id, Deny(), shown.digest)
        elif key == "approve" and shown.may_approve and shown.held is None:
            await self._approve(call_id, shown)

    async def _open(self, launcher: WindowLauncher) -> None:
        if problem := await launcher.open():
            text = f"{visible(launcher.command[0])} cannot be started: {problem}"
            await self._bus.show(CallNotice(TITLE, text, may_approve=False), ())

    async def _approve(self, call_id: str, shown: _Shown) -> None:
        if self._undo_s <= 0:
            await self._decide(call_id, Approve(), shown.digest)
            return
        # First the notification that undoes it, so that no approval begins that nobody can undo.
        shown.may_approve = False
        text = f"Call {call_id} is approved in {self._undo_s:g} seconds."
        id_ = await self._bus.show(CallNotice(TITLE, text, may_approve=False), (("undo", "Undo"),))
        if self._shown.get(call_id) is not shown:
            await self._bus.hide(id_)
            return
        later = self._start(self._approve_later(call_id, shown.digest))
        self._shown[call_id] = _Shown(id_, shown.digest, float("-inf"), may_approve=False, held=later)

    async def _approve_later(self, call_id: str, digest: str) -> None:
        await asyncio.sleep(self._undo_s)
        await self._decide(call_id, Approve(), digest)

    async def _decide(self, call_id: str, decision: Decision, digest: str) -> None:
        try:
            # The digest is of what was shown: the supervisor refuses it if the call is another one by now.
            await self._supervision.decide(call_id, decision, self._by, digest)
        except AlreadyDecided:
            pass
        except WhisperError as error:
            text = visible(f"Call {call_id} was not decided: {error.sentence()}")
            await self._bus.show(CallNotice(TITLE, text[:LONGEST_BODY], may_approve=False), ())

    def _forget(self, call_id: str) -> None:
        shown = self._shown.pop(call_id)
        self._drop_approval(shown)
        self._start(self._bus.hide(shown.id))

    def _drop_approval(self, shown: _Shown) -> None:
        # The task that decides is told of its own decision by the board, and must not be ended by it.
        if shown.held is not None and shown.held is not asyncio.current_task():
            shown.held.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def carry_out() -> None:
            # A desktop that is gone is reported by the next notification.
            with suppress(BusProblem):
                await work

        task = asyncio.create_task(carry_out())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never awaits its work.
        task.add_done_callback(lambda _: work.close())
        return task
