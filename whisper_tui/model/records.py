"""Very many records in little memory: those that are in use are whole, the others packed."""

import zlib
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping

from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict

KEPT_WHOLE = 1200
"""Records that are not packed: those that were asked for or changed last.

More than the ended calls that a board keeps: those are soon forgotten, and packing them would be work for nothing.
"""


class Records(MutableMapping[str, CallRecord]):
    """Records by their call's id, in the order of arrival. A packed one takes a twentieth of a whole one.

    Asking for a packed record unpacks it, which takes some thirty microseconds; the least used one is packed instead.
    """

    def __init__(self, kept_whole: int = KEPT_WHOLE) -> None:
        self._kept_whole = kept_whole
        self._packed: dict[str, bytes] = {}
        """Every id, with its record if that is packed; nothing if only the whole one is right."""
        self._whole: OrderedDict[str, CallRecord] = OrderedDict()
        """The least recently used first."""

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
        record = _unpacked(self._packed[call_id])
        self._use(call_id, record)
        return record

    def __setitem__(self, call_id: str, record: CallRecord) -> None:
        self._packed[call_id] = b""
        self._use(call_id, record)

    def __delitem__(self, call_id: str) -> None:
        del self._packed[call_id]
        self._whole.pop(call_id, None)

    def _use(self, call_id: str, record: CallRecord) -> None:
        self._whole[call_id] = record
        self._whole.move_to_end(call_id)
        if len(self._whole) > self._kept_whole:
            least_used, record = self._whole.popitem(last=False)
            if not self._packed[least_used]:
                self._packed[least_used] = _packed(record)


def _packed(record: CallRecord) -> bytes:
    press = zlib.compressobj(level=1, zdict=_COMMON)
    return press.compress(record.model_dump_json().encode()) + press.flush()


def _unpacked(packed: bytes) -> CallRecord:
    return CallRecord.model_validate_json(zlib.decompressobj(zdict=_COMMON).decompress(packed))


def _typical() -> CallRecord:
    """A record that looks like most: what others share with it takes no room in them."""
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


_COMMON = _typical().model_dump_json().encode()
