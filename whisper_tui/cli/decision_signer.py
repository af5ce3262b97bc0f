"""Signs the decisions of a desk by an ssh key, by OpenSSH's own program (decision 41)."""

import asyncio
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.desk_proof import NAMESPACE, DeskProof, read_signature, statement_of
from whisper_tui.model.errors import Refused
from whisper_tui.model.phone_proof import LONGEST_DOCUMENT, seen_document
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.supervisor.approvals.ssh_signatures import BEGIN, END, PROGRAM, program_missing

SIGN_S = 30.0
"""Seconds in which a key signs, and in which a person touches it."""
NOTICE_S = 1.0
"""Seconds after which a person is told that the key may wait for a touch."""
WAITING = "The key signs this decision. If it blinks, touch it."


@dataclass(frozen=True)
class DecisionSigner:
    """Signs decisions at this desk by one ssh key: a private one in a file, or a public one whose agent has it."""

    key: str
    """The path of the file, as in the configuration."""
    clock: Callable[[], float] = time.time
    limit_s: float = SIGN_S

    async def sign(
        self, record: CallRecord, decision: Decision, by: Decider, waiting: Callable[[str], object]
    ) -> DeskProof:
        """Sign a decision about a call as it was shown. `waiting` is told if that takes a while.

        Raises `Refused` and `Unavailable`; then there is no decision.
        """
        document = seen_document(record)
        if len(document) > LONGEST_DOCUMENT:
            raise self._failed(f"call {record.id} is too long for a signed decision")
        statement = statement_of(record, document, decision, by, float(self.clock()))
        said = await self._signed(statement.encode(), waiting)
        signature = said.decode("ascii", "replace").replace(BEGIN, "").replace(END, "").replace("\n", "")
        try:
            read_signature(signature)
        except ValueError as error:
            raise self._failed(f"{PROGRAM} has written no signature: {error}") from None
        return DeskProof(document=document, statement=statement, signature=signature)

    async def _signed(self, data: bytes, waiting: Callable[[str], object]) -> bytes:
        argv = (PROGRAM, "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(Path(self.key).expanduser()))
        try:
            # A session of its own has no terminal, so that no question for a passphrase is written into the cockpit.
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except FileNotFoundError:
            raise program_missing() from None
        except OSError as error:
            raise self._failed(f"{PROGRAM} cannot be started: {error.strerror}") from None
        notice = asyncio.get_running_loop().call_later(NOTICE_S, waiting, WAITING)
        try:
            async with asyncio.timeout(self.limit_s):
                out, problem = await process.communicate(data)
        except TimeoutError:
            what = f"the key has not signed within {self.limit_s:g} seconds: nobody touched it, or its agent hangs"
            raise self._failed(what) from None
        finally:
            notice.cancel()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            raise self._failed(_last_line(problem) or f"{PROGRAM} has ended with {process.returncode}")
        return out

    def _failed(self, why: str) -> Refused:
        return Refused(
            f"nothing was decided, because the decision could not be signed: {why}",
            hint=f"The key is {visible(self.key)} ([evidence] sign in config.toml): unlock it with ssh-add, plug it in "
            "and touch it, or correct the setting; then decide again",
        )


def signer_of(key: str) -> DecisionSigner | None:
    """Return the signer for this setting. None: decisions are not signed."""
    return DecisionSigner(key) if key else None


def _last_line(problem: bytes) -> str:
    lines = problem.decode(errors="replace").strip().splitlines()
    return visible(lines[-1][:300]) if lines else ""
