"""What the exit code of `whisper-tui` says."""

from whisper_tui.model.errors import BadConfiguration, InvalidRequest, Unavailable, UnknownCall, WhisperError

DONE = 0
REFUSED = 1
WRONG_USE = 2
UNAVAILABLE = 3
UNKNOWN = 4
BAD_CONFIGURATION = 5
OUTPUT_LOST = 74
INTERRUPTED = 130
PIPE_CLOSED = 141

MEANINGS = {
    DONE: "it was done",
    REFUSED: "it was refused, or the tool call failed: standard error says why",
    WRONG_USE: "the command line or its input is wrong",
    UNAVAILABLE: "the supervisor or its files cannot be used, or none runs",
    UNKNOWN: "there is no such call",
    BAD_CONFIGURATION: "the configuration file cannot be used",
    OUTPUT_LOST: "standard output could not be written; what was asked for may have been done",
    INTERRUPTED: "it was interrupted with Ctrl-C",
    PIPE_CLOSED: "whoever read the output stopped reading",
}

EPILOG = "exit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())


def code_of(error: WhisperError) -> int:
    """The exit code for an error."""
    match error:
        case InvalidRequest() | WhisperError(kind="unknown_tool"):
            return WRONG_USE
        case UnknownCall():
            return UNKNOWN
        case Unavailable():
            return UNAVAILABLE
        case BadConfiguration():
            return BAD_CONFIGURATION
        case _:
            return REFUSED
