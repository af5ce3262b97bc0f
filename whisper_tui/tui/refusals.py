"""What a person never wants in a session: beginnings of commands that this cockpit denies as long as it is open."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from whisper_tui.model.call import Session
from whisper_tui.model.command import Argv, Function
from whisper_tui.model.state import CallRecord

Words = tuple[str, ...]
LONGEST = 4000
"""Characters of a line of bash that are looked at for a beginning."""


@dataclass(frozen=True)
class Refusal:
    """Calls of one session that begin with these words are denied with this reason."""

    session_id: str
    opened_at: float
    """When the session began: another supervisor may have given its id to another."""
    words: Words
    reason: str


class Refusals:
    """All that is refused, in the order in which it was said."""

    def __init__(self) -> None:
        self._all: tuple[Refusal, ...] = ()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, refusal: Refusal) -> None:
        """From now on; a new reason for the same words takes the place of the old one."""
        others = (each for each in self._all if (each.session_id, each.words) != (refusal.session_id, refusal.words))
        self._all = (*others, refusal)

    def of_session(self, session_id: str) -> tuple[Refusal, ...]:
        """What is refused in a session."""
        return tuple(refusal for refusal in self._all if refusal.session_id == session_id)

    def lift(self, session_id: str) -> None:
        """Refuse nothing of a session any more."""
        self._all = tuple(refusal for refusal in self._all if refusal.session_id != session_id)

    def about(self, record: CallRecord, session: Session | None) -> Refusal | None:
        """What refuses a call. None: nothing does."""
        if session is None:
            return None
        for refusal in self.of_session(session.id):
            length = len(refusal.words)
            same = refusal.opened_at == session.opened_at
            if same and any(words[:length] == refusal.words for words in beginnings(record)):
                return refusal
        return None


def beginnings(record: CallRecord) -> Iterator[Words]:
    """The words of a call, and those of each command in it as far as they are known."""
    command = record.call.spec.command
    if isinstance(command, Argv):
        yield command.words()
    elif isinstance(command, Function):
        yield (command.tool,)
    else:
        yield _words(command.text)
    if record.verdict is not None:
        yield from record.verdict.prefixes
    for meaning in record.resolved.commands if record.resolved else ():
        yield tuple(word for word in takewhile(lambda word: word is not None, meaning.words) if word is not None)


def _words(text: str) -> Words:
    """The first words of a text, quoted ones whole where the quotes are closed."""
    beginning = text[:LONGEST]
    try:
        return tuple(shlex.split(beginning))
    except ValueError:
        return tuple(beginning.split())


def suggested_words(record: CallRecord) -> Words:
    """A beginning that says what a call does: what the policy suggests, else its first two words."""
    if record.verdict is not None and record.verdict.prefixes:
        return record.verdict.prefixes[0]
    return next(beginnings(record))[:2]
