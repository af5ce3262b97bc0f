"""A supervisor with a paired phone and a desk, whose journal evidence is written from."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.phones import conftest as phones
from tests.supervisor.phones.authenticator import Authenticator
from whisper_tui.model.evidence import CallFound, DecisionFound, EvidenceReport
from whisper_tui.supervisor.evidence.bundle_lines import BundleLine, Closing, parsed, spelled
from whisper_tui.supervisor.evidence.bundle_writer import EvidenceWriter, Written, write_file
from whisper_tui.supervisor.evidence.evidence_check import check_evidence
from whisper_tui.supervisor.journal.sqlite_file import Head

key = phones.key


class EvidenceBench(phones.PhoneBench):
    """A supervisor, and the evidence about its calls."""

    @property
    def file(self) -> Path:
        return Path(self.home.state).parent / "evidence.json"

    def write(self, *words: str, contents: bool = False, noted: Head | None = None) -> Written:
        writer = EvidenceWriter(Path(self.home.state), lambda: self.now)
        return write_file(writer, self.file, words, noted, contents=contents)

    def report(self, *words: str, contents: bool = False) -> EvidenceReport:
        """Write evidence and check it."""
        self.write(*words, contents=contents)
        return check_evidence(self.file)

    def lines(self) -> list[BundleLine]:
        return [parsed(line) for line in self.file.read_bytes().splitlines(keepends=True)]

    def rewritten(self, lines: list[BundleLine]) -> EvidenceReport:
        """What is found in a file of these lines, whose last digest is right."""
        import hashlib

        data = b"".join(map(spelled, lines[:-1]))
        self.file.write_bytes(data + spelled(Closing(sha256=hashlib.sha256(data).hexdigest())))
        return check_evidence(self.file)

    async def yes(self, token: str, key: Authenticator, *words: str) -> str:
        """A call that a phone has approved."""
        call_id = await self.asked(*words)
        await self.say_yes(token, key, call_id)
        await self.ordered(call_id)
        return call_id


def decision_of(report: EvidenceReport, call_id: str) -> DecisionFound:
    """The last decision about a call."""
    return call_of(report, call_id).decisions[-1]


def call_of(report: EvidenceReport, call_id: str) -> CallFound:
    return next(call for call in report.calls if call.id == call_id)


def with_body(line: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The same line with another text."""
    body = json.loads(line.body)
    change(body)
    return line.model_copy(update={"body": json.dumps(body, separators=(",", ":"))})


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[EvidenceBench]:
    made = EvidenceBench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()
