"""The version of the first lines of relay, hook and `exec`, which agents may have started long before an upgrade."""

from collections.abc import Mapping
from typing import Any

from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion


def check_version(hello: Mapping[str, Any], what: str, spoken: int) -> None:
    """Raises `OtherVersion` where a first line is of another version, for whoever started the program to read."""
    version = hello.get("version", spoken)
    if version != spoken:
        raise OtherVersion(
            f"this {what} speaks version {version!r}, and the supervisor (whisper_tui {__version__}) speaks {spoken}",
            hint="Start the agent again, or have a human run whisper-tui restart with its version; what runs goes on",
        )
