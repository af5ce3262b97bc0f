"""Records of very many calls in little memory: packed, each behind the few facts that lists of calls need."""

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field
from pydantic_core import from_json, to_json

from whisper_tui import __version__
from whisper_tui.model.call import Argv, CarriedOut, CommandSpec, Shell, ToolCall
from whisper_tui.model.event import AnyEvent
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.value import Count, Value
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict, is_grave


class CallLine(NamedTuple):
    """Facts of a call that lists, filters, groups and notifications need, read without its record."""

    id: str
    session_id: str
    tool: str
    description: str
    command: list[str] | str
    """The words of an argv; the text for a shell, or of a tool that its agent carries out."""
    carried_out: str
    """The tool that its agent carries out. Empty: it is a command."""
    prefixes: list[list[str]]
    """The prefixes of its commands as the policy reads them."""
    risks: list[list[str]]
    """For each risk its id, and `grave` if it is."""
    not_inspected: bool
    """True if it runs code that was not inspected."""
    agent_gave_up: bool
    waits_since: float | None
    """Seconds since the epoch. None: it does not wait for a decision."""
    place: str = ""
    """Where it runs. Empty: on the machine of its supervisor."""


def call_line(record: CallRecord) -> CallLine:
    """Return the facts of a call for lists."""
    call, verdict, resolved, command = record.call, record.verdict, record.resolved, record.spec.command
    return CallLine(
        id=call.id,
        session_id=call.session_id,
        tool=call.tool,
        description=call.description,
        command=list(command.words()) if isinstance(command, Argv) else command.text,
        carried_out=command.tool if isinstance(command, CarriedOut) else "",
        prefixes=[list(prefix) for prefix in verdict.prefixes] if verdict is not None else [],
        risks=[[risk.id, "grave"] if is_grave(risk) else [risk.id] for risk in (verdict.risks if verdict else ())],
        not_inspected=resolved is not None and bool(resolved.not_inspected),
        agent_gave_up=bool(record.agent_gave_up),
        waits_since=record.state.since if isinstance(record.state, Waiting) else None,
        place=record.spec.place,
    )


Lines = Mapping[str, CallLine | None]
"""Calls by their ids, as lists need them. None: the board has forgotten it."""


class PackedCalls(Value):
    """Waiting calls as they are sent to a cockpit: it unpacks the few whose rows it draws."""

    model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")

    kind: Literal["packed"] = "packed"
    seq: Count
    """The number of the last event before they were packed."""
    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    """The session of each."""
    sizes: tuple[Count, ...]
    """The length of each packed record."""
    records: bytes
    """The packed records, one after the other."""
    ticketed: tuple[str, ...] = ()
    """Those that have a ticket."""
    deduplicated: tuple[str, ...] = ()
    """Those that have a deduplication key."""

    def each(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield the id, the session and the packed record of each."""
        end = 0
        for call_id, session_id, size in zip(self.ids, self.sessions, self.sizes, strict=True):
            start, end = end, end + size
            yield call_id, session_id, self.records[start:end]


BoardItem = Annotated[AnyEvent | PackedCalls, Field(discriminator="kind")]
"""The form in which a board is sent."""

KEPT_WHOLE = 1200
"""Records that are not packed: those that were asked for or changed last.

More than the ended calls that a board keeps: those are soon forgotten, and packing them would be work for nothing.
"""


class CallRecords(MutableMapping[str, CallRecord]):
    """Records by call id, in order of arrival; most are packed, which takes a twentieth of the memory.

    Asking for a packed record unpacks it, which takes some thirty microseconds; the least used one is packed instead.
    """

    def __init__(self, kept_whole: int = KEPT_WHOLE) -> None:
        self._kept_whole = kept_whole
        self._packed: dict[str, bytes] = {}
        """Every id, with its packed record; empty if only the unpacked one is current."""
        self._whole: OrderedDict[str, CallRecord] = OrderedDict()
        """The least recently used first."""
        self.unproven: set[str] = set()
        """Ids of the records whose packed form is good enough for lists only."""
        self.prove: Callable[[str], CallRecord] = self._as_packed
        """Returns the record of such a call from where it is certain."""
        self.on_packed: Callable[[str], object] = lambda _call_id: None
        """Called with the id of a record that was packed."""

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._packed)

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._packed

    def __getitem__(self, call_id: str) -> CallRecord:
        record = self._whole.get(call_id)
        if record is not None:
            self._whole.move_to_end(call_id)
            return record
        if call_id not in self.unproven:
            record = unpacked(self._packed[call_id])
        else:
            record = self.prove(call_id)
            self.unproven.discard(call_id)
            self._packed[call_id] = b""
        self._use(call_id, record)
        return record

    def __setitem__(self, call_id: str, record: CallRecord) -> None:
        # An empty value means that only the object is current; the packed form would be out of date.
        self._packed[call_id] = b""
        self.unproven.discard(call_id)
        self._use(call_id, record)

    def __delitem__(self, call_id: str) -> None:
        del self._packed[call_id]
        self.unproven.discard(call_id)
        self._whole.pop(call_id, None)

    def line(self, call_id: str) -> CallLine | None:
        """Return the facts of a call for lists, without unpacking its record. None: it is not here."""
        packed = self._packed.get(call_id)
        if packed is None:
            return None
        line = _line_of(packed) if packed else None
        return line if line is not None else call_line(self._whole.get(call_id) or unpacked(packed))

    def lines(self, call_ids: Iterable[str]) -> Lines:
        """Return the facts of calls for lists, by their ids."""
        return {call_id: self.line(call_id) for call_id in call_ids}

    def add_packed(self, call_id: str, packed: bytes, *, proven: bool = True) -> None:
        """Add the packed record of a call that is not here yet. Unless `proven`, its first use asks `prove`."""
        self._packed[call_id] = packed
        if not proven:
            self.unproven.add(call_id)

    def packed(self, call_id: str) -> bytes:
        """Return the packed record of a call as it is now. Empty: it is not packed, or not here."""
        return self._packed.get(call_id, b"")

    def _as_packed(self, call_id: str) -> CallRecord:
        return unpacked(self._packed[call_id])

    def frozen(self) -> "FrozenRecords":
        """Return all records as they are now."""
        return FrozenRecords(self._packed.copy(), dict(self._whole))

    def _use(self, call_id: str, record: CallRecord) -> None:
        self._whole[call_id] = record
        self._whole.move_to_end(call_id)
        # A hundred thousand waiting calls must fit into memory; only those in use are whole objects (decision 26).
        if len(self._whole) > self._kept_whole:
            least_used, record = self._whole.popitem(last=False)
            # A record that did not change since it was unpacked needs no second compression.
            if not self._packed[least_used]:
                self._packed[least_used] = packed_record(record)
                self.on_packed(least_used)


class FrozenRecords:
    """The records of one moment: both kinds are immutable, so this shares them."""

    def __init__(self, packed: dict[str, bytes], whole: dict[str, CallRecord]) -> None:
        self._packed = packed
        self._whole = whole

    def packed(self, call_id: str) -> bytes:
        """Return the packed record of a call."""
        return self._packed[call_id] or packed_record(self._whole[call_id])


FIRST_PACKED, PACKED_AT_ONCE = 50, 500
"""Calls in the first part, so that the first screen is there at once, and in each other one."""


def in_parts(
    seq: int,
    records: FrozenRecords,
    ids: Sequence[str],
    session_of: Mapping[str, str],
    marked: tuple[Set[str], Set[str]],
) -> Iterator[PackedCalls]:
    """Yield packed calls in parts. `marked`: those that have a ticket, and those that have a deduplication key."""
    starts = (0, *range(FIRST_PACKED, len(ids), PACKED_AT_ONCE)) if ids else ()
    for start, end in zip(starts, (*starts[1:], len(ids)), strict=False):
        part = tuple(ids[start:end])
        packed = [records.packed(call_id) for call_id in part]
        yield PackedCalls(
            seq=seq,
            ids=part,
            sessions=tuple(session_of[call_id] for call_id in part),
            sizes=tuple(map(len, packed)),
            records=b"".join(packed),
            ticketed=tuple(each for each in part if each in marked[0]),
            deduplicated=tuple(each for each in part if each in marked[1]),
        )


_RAW = -zlib.MAX_WBITS
"""Without header and checksum, which would take a tenth of a small record."""


def packed_record(record: CallRecord) -> bytes:
    """Return a record in few bytes. The facts for lists come first, so that they can be read alone."""
    # The dictionary makes small records compress well: most of their JSON is the same keys and defaults.
    press = zlib.compressobj(level=3, wbits=_RAW, zdict=_common())
    return press.compress(_text(record)) + press.flush()


def unpacked(packed: bytes) -> CallRecord:
    """Return the record in these bytes."""
    text = zlib.decompressobj(wbits=_RAW, zdict=_common()).decompress(packed)
    return CallRecord.model_validate_json(text[text.index(b"\n") :])


LONGEST_LINE = 4096
"""Bytes of the facts for lists at most; of a call with more of them, only the record is kept."""


def _line_of(packed: bytes) -> CallLine | None:
    line, end, _ = zlib.decompressobj(wbits=_RAW, zdict=_common()).decompress(packed, LONGEST_LINE + 1).partition(b"\n")
    # A hundred thousand lines are read at once, and hardly share a text worth remembering.
    return CallLine._make(from_json(line, cache_strings="none")) if line and end else None


def _text(record: CallRecord) -> bytes:
    line = to_json(call_line(record))
    return (line if len(line) <= LONGEST_LINE else b"") + b"\n" + record.model_dump_json().encode()


def _typical() -> CallRecord:
    """Return a typical record: a compression dictionary for the others."""
    text = "cd /home/user/project && npm install && npm run build -- --verbose | tee build.log"
    spec = CommandSpec(command=Shell(text=text), cwd="/home/user/project")
    arguments = {"command": text, "cwd": spec.cwd, "description": "Build the project", "timeout": 120000}
    return CallRecord(
        call=ToolCall(
            id="1",
            session_id="s1",
            tool="run_shell_command",
            arguments=arguments,
            spec=spec,
            description="Build the project",
            submitted_at=1700000000.0,
        ),
        state=Waiting(since=1700000000.0),
        verdict=Verdict(
            kind="ask",
            reason="No rule allows it",
            risks=(Risk(id="network", sentence="It reaches the network", span=(26, 37)),),
            prefixes=(("npm", "install"),),
        ),
        resolved=Resolved(
            program="/usr/bin/bash",
            cwd=spec.cwd,
            commands=(Meaning(words=("npm", "install"), program="/usr/bin/npm"),),
        ),
    )


@cache
def _common() -> bytes:
    return _text(_typical())


@cache
def own_packing() -> str:
    """Return a name of the way in which records are packed: only programs with the same one understand each other."""
    return hashlib.sha256(__version__.encode() + b"\n" + _common()).hexdigest()[:16]
