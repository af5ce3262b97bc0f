"""Deciding from a paired phone: what it is shown, what it may answer, and the operations of its role.

A phone's page is served by a process of its own (`whisper_tui.transports.phone`), which the supervisor does not trust
with a yes: each one is an assertion of the phone's passkey, which the supervisor verifies itself.
"""

from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from whisper_tui.model.call import CallId
from whisper_tui.model.decision import Decider
from whisper_tui.model.push_endpoint import LONGEST_ENDPOINT
from whisper_tui.model.value import Count, Value

PAIR_PATH = "/pair"
"""Path of the page that pairs a phone. The code follows as the fragment, which no server or preview is sent:
`https://NAME/pair#CODE`."""
MOST_ROWS = 100
"""Waiting calls in one list."""
LONGEST_COMMAND = 65_536
"""Characters of a command that a phone is shown. A longer one is cut, and cannot be approved there."""
MOST_LINES = 3_000
"""Lines of the differences of a preview that a phone is shown."""
MOST_EFFECTS = 500
"""Files, and sentences about other effects, that a phone is shown of each kind."""
LONGEST_CREDENTIAL = 16_384
"""Characters of the JSON of an attestation or an assertion."""
LONGEST_WORDS = 2_000
"""Characters of the reason of a denial."""
LONGEST_DEVICE_NAME = 40
"""Characters of the name of a phone."""
LONGEST_WAIT_S = 25.0
"""Seconds after which `phone_wait` answers although nothing has changed."""

PhoneDecision = Literal["deny", "set_aside", "approve", "apply"]
"""`approve`: the command runs. `apply`: exactly the changes of the shown preview are made real, and nothing runs."""
SignedDecision = Literal["approve", "apply"]
"""Those that need an assertion of the passkey."""
FreeDecision = Literal["deny", "set_aside"]
"""Those that a paired phone may take without one."""

Token = Annotated[str, Field(min_length=1, max_length=200)]
"""Secret of a paired phone, as `phone_pair` has returned it. Keep it in a cookie (HttpOnly, Secure, SameSite=Strict,
long-lived) and nowhere else: it reads and denies, and never approves."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PairingCode = Annotated[str, Field(min_length=1, max_length=40)]
"""Blanks, hyphens and case do not matter."""
DeviceName = Annotated[str, Field(min_length=1, max_length=LONGEST_DEVICE_NAME)]
Credential = Annotated[str, Field(min_length=2, max_length=LONGEST_CREDENTIAL)]
"""`JSON.stringify(credential.toJSON())` of the browser."""
PushAddress = Annotated[str, Field(max_length=LONGEST_ENDPOINT)]
Nonce = Annotated[str, Field(min_length=1, max_length=100)]


class PhoneRow(Value):
    """A waiting call in the list."""

    id: str
    session: str
    """Name of the session."""
    agent: str = ""
    """The agent's program. Empty: not known."""
    command: str
    """One line, shortened, safe to show as text."""
    verdict: str
    """One line: why it is asked about, or its worst risk."""
    severe: bool = False
    """True if one of its risks is severe."""
    careful: bool = False
    """True if it has other risks, or runs code that nobody has read."""
    waiting_since: float
    """Seconds since the epoch."""
    place: str = ""
    """The place where it would run. Empty: this machine."""
    aside: bool = False
    """True if it is set aside; such calls come last."""
    yes_until: float | None = None
    """A phone has said yes, and it counts from this time on, in seconds since the epoch. None: none has."""


class PhoneCalls(Value):
    """The calls that wait for a human, oldest first."""

    rows: Annotated[tuple[PhoneRow, ...], Field(max_length=MOST_ROWS)] = ()
    more: Count = 0
    """Those that are not in the list."""
    revision: Count
    """For `phone_wait`."""
    now: float
    """The supervisor's clock, in seconds since the epoch."""


class PhoneEffect(Value):
    """A file that would change."""

    path: str
    mark: Literal["new", "changed", "deleted"]
    outside: bool = False
    """True if it is outside the workspace."""
    runs_later: str = ""
    """Why the file decides what runs later, or who may approve, in a few words. Empty: it does not."""
    added: Count | None = None
    """Lines. None: not known."""
    removed: Count | None = None
    detail: str = ""
    """More about it, as a clause. Empty: there is nothing more."""


class DiffLine(Value):
    """One line of a difference."""

    kind: Literal["file", "hunk", "same", "added", "removed", "note"]
    text: str
    """Without its sign; control and hidden characters are made visible."""


class PhonePreview(Value):
    """The preview of a call, as far as there is one."""

    state: Literal["none", "running", "finished", "problem"] = "none"
    """`problem`: it ended, and its changes cannot be applied."""
    about: str = ""
    """A sentence: how it ended, or why it cannot be applied."""
    diff: Annotated[tuple[DiffLine, ...], Field(max_length=MOST_LINES)] = ()
    whole: bool = True
    """False if the differences are longer than `diff`, or not all are known."""


class PhoneCall(Value):
    """A waiting call as a phone shows it. All text is data: it is shown as text and never as markup."""

    id: str
    session: str
    agent: str = ""
    description: str = ""
    """The agent's own words about it."""
    tool: str = ""
    """The tool by which the agent asks."""
    command: str
    """The command, the edit or the arguments; control and hidden characters are made visible."""
    whole: bool = True
    """False if the command is cut."""
    directory: str
    place: str = ""
    verdict: str
    """The line of the verdict: why it is asked about, or its worst risk."""
    severe: bool = False
    careful: bool = False
    """As in the row."""
    risks: tuple[str, ...] = ()
    """All risks, and code that nobody has read, as sentences; the severe ones first."""
    effects: Annotated[tuple[PhoneEffect, ...], Field(max_length=MOST_EFFECTS)] = ()
    other_effects: Annotated[tuple[str, ...], Field(max_length=MOST_EFFECTS)] = ()
    """Effects besides those on files, those that nobody can state, and the number left out, as sentences."""
    hosts: tuple[str, ...] = ()
    """Machines that it would talk to."""
    undo: str = ""
    """A sentence that says if, and how, it can be undone. Empty: nothing is known about that."""
    preview: PhonePreview = PhonePreview()
    waiting_since: float
    aside: bool = False
    yes_until: float | None = None
    """As in the row."""
    yes_by: str = ""
    """The name of the phone that said yes. Empty: none has."""
    seen: Digest
    """Digest of what is shown; the answer is about this and nothing else."""
    words: tuple[str, str, str, str]
    """Four words for that digest. The cockpit shows the same for the same."""
    may: tuple[PhoneDecision, ...]
    """The decisions that this phone may take now."""
    why_not: str = ""
    """Why it may not approve or apply, as a sentence. Empty: it may, as far as there is something to apply."""
    revision: Count


class PhoneChallenge(Value):
    """The request to sign one yes, or to sign in."""

    nonce: str
    challenge: str
    """The same as in `options`, base64url."""
    expires_in_s: float
    credential_ids: tuple[str, ...]
    """Base64url. Empty, to sign in: any key of this page."""
    options: dict[str, Any]
    """For `PublicKeyCredential.parseRequestOptionsFromJSON`; `navigator.credentials.get({publicKey: …})`."""


class PhoneRegistration(Value):
    """The request to make a key, for a phone that is to be paired."""

    expires_in_s: float
    options: dict[str, Any]
    """For `PublicKeyCredential.parseCreationOptionsFromJSON`; `navigator.credentials.create({publicKey: …})`."""


class PhoneAnswer(Value):
    """The outcome of a decision."""

    call_id: str
    decision: PhoneDecision
    undo_s: float = 0.0
    """Seconds in which the desk can still withdraw a yes, before it counts. 0: the decision counts."""
    said: str
    """A sentence for the phone."""


class PhoneDevice(Value):
    """A phone, as the desk lists it."""

    id: str
    name: str
    confirmed: bool
    """False: the desk has not confirmed it yet, and it may do nothing."""
    synced: bool
    """True if its key is, or may be, copied to other devices by an account."""
    origin: str
    """The address of the page for which the key was made."""
    paired_at: float
    may_approve_from: float
    """Seconds since the epoch. Until then it may only deny and set aside."""
    last_used: float | None = None
    pushed: bool = False
    """True if it has asked to be woken by pushes when calls wait."""
    revoked_at: float | None = None
    words: tuple[str, str, str, str]
    """Four words for its public key: phone and desk show the same."""


class PhonePushing(Value):
    """The pushes that wake a phone when calls start to wait. They have no content."""

    key: str
    """Base64url of the public key by which a push service knows them: `applicationServerKey`."""
    endpoint: str
    """The address at a push service. Empty: this phone wants none."""


class PairedPhone(Value):
    """A phone that has sent its key or signed in, and the secret by which it is known from now on."""

    device: PhoneDevice
    token: Token
    """Counts for something once the desk has confirmed the phone: see `phone_device`. An earlier one counts no more."""


class PhonePairing(Value):
    """The pairing that is open, as the desk sees it."""

    state: Literal["closed", "open", "key"]
    """`open`: the code can be used. `key`: a phone has sent its key, which waits to be confirmed."""
    code: str = ""
    """In readable form. Empty: none is open."""
    url: str = ""
    """The address to open on the phone, with the code."""
    expires_in_s: float = 0.0
    device: PhoneDevice | None = None
    """The phone that waits to be confirmed."""
    closed_because: str = ""
    """Why the last one was closed, as a clause. Empty: there was none."""


class PhoneRole(Protocol):
    """All that a connection with the role `phone` can ask for. Every error is a `WhisperError` with a sentence.

    `serve(supervisor: PhoneRole, *, origin: str, port: int, ready: Callable[[int], None])` of
    `whisper_tui.transports.phone.phone_site` serves the page on it: a coroutine that listens on 127.0.0.1 (port 0: any
    free one), calls `ready` with the port, and returns when it is cancelled. `origin` is the address by which phones
    reach it, like `https://box.example.ts.net`.
    """

    async def phone_device(self, device: Token) -> PhoneDevice:
        """Return the phone with this secret.

        `UnknownPhone`, as from every operation: it is unknown, was not confirmed in time, or is revoked.
        """
        ...

    async def phone_calls(self, device: Token) -> PhoneCalls:
        """Return the waiting calls."""
        ...

    async def phone_call(self, device: Token, call_id: CallId) -> PhoneCall:
        """Return a waiting call. `AlreadyDecided` if it does not wait, by whom it was decided; `UnknownCall`."""
        ...

    async def phone_begin(
        self, device: Token, call_id: CallId, decision: SignedDecision, seen: Digest
    ) -> PhoneChallenge:
        """Begin a yes. `ChangedSinceSeen` if the call is not what was seen; `NotAllowed` if this phone may not."""
        ...

    async def phone_decide(self, device: Token, nonce: Nonce, assertion: Credential) -> PhoneAnswer:
        """Take a yes. The nonce is used up, whatever comes of it."""
        ...

    async def phone_refuse(
        self,
        device: Token,
        call_id: CallId,
        decision: FreeDecision,
        seen: Digest,
        reason: Annotated[str, Field(max_length=LONGEST_WORDS)] = "",
    ) -> PhoneAnswer:
        """Deny a call, with a reason for its agent, or set it aside."""
        ...

    async def phone_pair_begin(self, code: PairingCode, name: DeviceName) -> PhoneRegistration:
        """Begin to pair a phone. `NotAllowed` if no pairing is open at the desk, or the code is wrong."""
        ...

    async def phone_pair(self, code: PairingCode, name: DeviceName, attestation: Credential) -> PairedPhone:
        """Take the key of a phone, which the desk then confirms."""
        ...

    async def phone_sign_in_begin(self) -> PhoneChallenge:
        """Begin to sign in with the passkey of a paired phone whose secret is lost."""
        ...

    async def phone_sign_in(self, nonce: Nonce, assertion: Credential) -> PairedPhone:
        """Give a paired phone another secret. The nonce is used up, whatever comes of it.

        Nothing else about the phone changes. `UnknownPhone`: no phone has this key, or it is revoked.
        """
        ...

    async def phone_count(self, device: Token) -> Count:
        """Return the number of calls that wait, without those that are set aside."""
        ...

    async def phone_pushing(self, device: Token) -> PhonePushing:
        """Return how this phone is woken."""
        ...

    async def phone_push_to(self, device: Token, endpoint: PushAddress) -> PhonePushing:
        """Wake this phone by pushes to this address of its browser. Empty: no more."""
        ...

    async def phone_wait(self, device: Token, since: Count) -> Count:
        """Return the revision of what phones see once it is not `since`, or after 25 s."""
        ...


class PhoneDesk(Protocol):
    """The operations of the socket by which a human manages phones at the desk."""

    async def phone_pairing_open(self, origin: Annotated[str, Field(max_length=300)]) -> PhonePairing:
        """Open a pairing for phones that reach the page by this address. It replaces one that is open."""
        ...

    async def phone_pairing(self) -> PhonePairing:
        """Return the pairing that is open."""
        ...

    async def phone_confirm(self, device_id: str, by: Decider, *, add: bool) -> PhoneDevice:
        """Add the phone that has sent its key, or refuse it."""
        ...

    async def phone_devices(self) -> tuple[PhoneDevice, ...]:
        """Return all phones, revoked ones included."""
        ...

    async def phone_revoke(self, name: str, by: Decider) -> PhoneDevice:
        """Revoke a phone, by its name or its id."""
        ...
