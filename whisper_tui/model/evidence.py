"""The result of the check of an evidence file: the decisions in it, and what is proven about them (decision 41)."""

from typing import Literal

from whisper_tui.model.call import CommandSpec
from whisper_tui.model.decision import Decider
from whisper_tui.model.value import Value

Backing = Literal["chain", "masked", "nothing"]
"""*chain*: the event is linked to the end. *masked*: its place is, and its text is shown without a secret. *nothing*:
it is of an earlier format, which this file cannot prove."""
Signed = Literal["", "verified", "wrong", "unchecked", "left out", "denial"]
"""*unchecked*: the library for passkeys, or ssh-keygen, is missing. *left out*: it covers a secret. *denial*: a denial
by phone needs no signature. Empty: it was decided by no phone, and without a signature."""


OutputFound = Literal["", "same", "changed", "digest only", "unproven"]
"""Of recorded output. *same*: it is in the file, and is what the chain has a digest of. *unproven*: it is in the file,
and the chain does not prove its digest. Empty: there is no digest."""
NotedFound = Literal["", "same", "outside"]


class SignatureFound(Value):
    """The signature of a phone, or of an ssh key at the desk, for a decision."""

    signed: Signed = ""
    phone: str = ""
    """The name of the phone. Empty: it was made at the desk."""
    key: str = ""
    """SHA-256 of its public key: in hex; of an ssh key as `ssh-keygen -l` prints it. Empty: not known."""
    public_key: str = ""
    """The ssh key, as in a line of `authorized_keys`."""
    touched: bool = False
    """True if that is a FIDO key which says that a person touched it."""
    words: tuple[str, ...] = ()
    """Four words for that."""
    origin: str = ""
    """The address of the page on which it was made."""
    seen: str = ""
    """SHA-256 of the document that was shown."""
    same_record: bool = True
    """False if the document names another digest of the programs and files than follows from the events."""
    why: str = ""
    """Why it is wrong, as a clause."""


class DecisionFound(Value):
    """A decision in an evidence file."""

    seq: int
    at: float
    kind: Literal["approve", "deny"]
    by: Decider
    reason: str = ""
    """Of a denial."""
    edited: CommandSpec | None = None
    applies: str = ""
    """The digest of the preview whose changes were to be made real."""
    remembered: bool = False
    standing: str = ""
    """The author of the standing approval or denial by which it was decided, as a clause."""
    seen: str = ""
    """The digest of what was seen, as the supervisor compared it: the request and the last verdict before. Empty: the
    events that hold it are shown without a secret."""
    seen_in: tuple[int, ...] = ()
    """The events that hold it."""
    backing: Backing
    signature: SignatureFound = SignatureFound()


class CallFound(Value):
    """A call in an evidence file, as its events tell it."""

    id: str
    session: str
    """The name of the session. Empty: not known."""
    agent: str = ""
    command: CommandSpec
    description: str = ""
    at: float
    verdict: str = ""
    risks: tuple[str, ...] = ()
    decisions: tuple[DecisionFound, ...] = ()
    state: str
    """`waiting`, `running`, or the kind of its ending."""
    backing: Backing
    """Of all its events: *chain* if it stands behind each of them."""
    is_complete: bool
    """True if no event about it up to the end of the chain can be missing."""
    output: OutputFound = ""


class EvidenceReport(Value):
    """The result of a check."""

    problems: tuple[str, ...] = ()
    """Clauses about what was changed or contradicts itself. Empty: nothing does."""
    program: str = ""
    written_at: int = 0
    first: int = 0
    """The first event of the chain in the file. 0: there is none."""
    end: str = ""
    """The end of the chain in the file, as `history verify` prints it. Empty: there is none."""
    shown: int = 0
    left_out: int = 0
    masked: int = 0
    unlinked: int = 0
    sessions: tuple[str, ...] = ()
    """The sessions of which all calls are in it, by name and id."""
    noted: NotedFound = ""
    """Of an end that was kept elsewhere. *outside*: the chain in the file does not reach it. Empty: none was given."""
    noted_at: int = 0
    """The number of the event up to which that end proves the chain. 0: it proves nothing."""
    calls: tuple[CallFound, ...] = ()
