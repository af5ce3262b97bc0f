"""A supervisor to which phones are paired, without a page between them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import Bench
from tests.supervisor.hand_executor import HandExecutor
from tests.supervisor.phones.authenticator import Authenticator
from whisper_tui.model.decision import Decider
from whisper_tui.model.event import Decided, Event
from whisper_tui.model.phone import PhoneAnswer, PhoneCall
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.present import phone_text
from whisper_tui.supervisor.phones.phone_devices import WAIT_S
from whisper_tui.supervisor.phones.phones import Phones
from whisper_tui.supervisor.settings import PhoneSettings, SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor

DESK = Decider(surface="command line", who="ada")
ORIGIN = "https://box.example.ts.net"


class PhoneBench(Bench):
    """A supervisor with a clock that a test leads, and an undo window that takes no time unless a test wants it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.now = 1_800_000_000.0
        self.undo_s = 0.0
        self.settings = PhoneSettings()

    @property
    def phones(self) -> Phones:
        assert self.supervisor.phones is not None
        return self.supervisor.phones

    async def open(self, rules: Rules = NO_RULES, workers: int = 4) -> None:
        self.executor = HandExecutor()
        settings = SupervisorSettings(workers=workers)
        self.supervisor = Supervisor(self.home, self.executor, rules=rules, settings=settings, clock=lambda: self.now)
        self.supervisor.take_phones(lambda: phone_text, self.settings, self.undo_s)
        await self.supervisor.open()

    async def pair(self, key: Authenticator, name: str = "pixel", *, wait: bool = True) -> str:
        """Pair a phone, and return its secret. `wait`: until it may approve."""
        code = (await self.phones.phone_pairing_open(key.origin)).code
        registration = await self.phones.phone_pair_begin(code, name)
        paired = await self.phones.phone_pair(code, name, key.attestation(registration.options))
        await self.phones.phone_confirm(paired.device.id, DESK, add=True)
        if wait:
            self.now += WAIT_S
        return paired.token

    async def asked(self, *words: str, text: str | None = None) -> str:
        """Submit a call that waits."""
        return await self.submit(await self.session(), *(words or ("make", "test")), text=text)

    async def card(self, token: str, call_id: str) -> PhoneCall:
        return await self.phones.phone_call(token, call_id)

    async def say_yes(
        self, token: str, key: Authenticator, call_id: str, decision: Any = "approve", **wrong: Any
    ) -> PhoneAnswer:
        """Look, sign and send."""
        seen = (await self.card(token, call_id)).seen
        challenge = await self.phones.phone_begin(token, call_id, decision, seen)
        return await self.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options, **wrong))

    def events(self, call_id: str) -> list[Event]:
        return list(self.supervisor._store.journal.events_of_call(call_id))

    def decided(self, call_id: str) -> Decided:
        """The decision about a call, as the journal has it."""
        return next(event for event in self.events(call_id) if isinstance(event, Decided))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[PhoneBench]:
    made = PhoneBench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()


@pytest.fixture
def key() -> Authenticator:
    return Authenticator()
