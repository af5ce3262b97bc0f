"""All errors that a user can meet; every message says what happened, to what, and what to do.

WhisperError
├── Refused              the request cannot be carried out as things stand
│   ├── UnknownCall      no such call
│   ├── AlreadyDecided   somebody was first
│   ├── ChangedSinceSeen what was decided about is not what is there now
│   ├── NotRunning       nothing to signal or to write to
│   ├── NotAllowed       this caller may not do that
│   │   └── UnknownPhone the phone is not paired, or was revoked
│   └── InvalidRequest   the request itself is wrong
├── Unavailable          the supervisor or its storage cannot be used
│   ├── AlreadyRunning   another supervisor has this state directory
│   ├── OtherVersion     the program at the other end speaks another protocol
│   ├── BadStateDirectory
│   └── JournalFailed    a fact could not be written, so nothing was done
├── BadConfiguration     a file of the user's cannot be read
└── BrokenHistory        an event about something that the events never mentioned
"""


class WhisperError(Exception):
    """Any error that a user can meet. `hint` says what to do about it."""

    kind = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def sentence(self) -> str:
        """The message and the hint, for people."""
        return f"{self.message}. {self.hint}" if self.hint else self.message


class Refused(WhisperError):
    """The request cannot be carried out as things stand."""

    kind = "refused"


class UnknownCall(Refused):
    """No such call."""

    kind = "unknown_call"


class AlreadyDecided(Refused):
    """Another decision came first."""

    kind = "already_decided"


class ChangedSinceSeen(Refused):
    """The call or file has changed since the human saw it."""

    kind = "changed_since_seen"


class NotRunning(Refused):
    """Nothing to signal or to write to."""

    kind = "not_running"


class NotAllowed(Refused):
    """This caller may not do that."""

    kind = "not_allowed"


class UnknownPhone(NotAllowed):
    """The phone is not paired, or was revoked."""

    kind = "unknown_phone"


class InvalidRequest(Refused):
    """The request itself is wrong."""

    kind = "invalid_request"


class Unavailable(WhisperError):
    """The supervisor or its storage cannot be used."""

    kind = "unavailable"


class AlreadyRunning(Unavailable):
    """Another supervisor has this state directory."""

    kind = "already_running"


class OtherVersion(Unavailable):
    """The supervisor and this program are of versions that do not understand each other."""

    kind = "other_version"


class BadStateDirectory(Unavailable):
    """The state directory is not ours, or not private."""

    kind = "bad_state_directory"


class JournalFailed(Unavailable):
    """A fact could not be written, so nothing was done."""

    kind = "journal_failed"


class BadConfiguration(WhisperError):
    """A file of the user's cannot be read."""

    kind = "bad_configuration"


class BrokenHistory(WhisperError):
    """An event about something that the events never mentioned."""

    kind = "broken_history"


def _tree(root: type[WhisperError]) -> dict[str, type[WhisperError]]:
    """Errors by their kind. One that has no kind of its own, in another layer, does not stand in for its parent."""
    found: dict[str, type[WhisperError]] = {}
    for child in root.__subclasses__():
        found |= _tree(child)
    # The parent comes last: a child without a `kind` of its own inherits that of its parent and must not replace it.
    return found | {root.kind: root}


def error_from(kind: str, message: str, hint: str = "") -> WhisperError:
    """The error of that kind, as it came over a wire; an unknown kind is a plain `WhisperError`."""
    # A newer supervisor may know kinds of errors that this program does not.
    return _tree(WhisperError).get(kind, WhisperError)(message, hint=hint)
