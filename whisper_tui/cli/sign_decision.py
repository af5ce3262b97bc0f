"""The signature of a decision on the command line, if the user has decisions signed (decision 41)."""

from typing import Any

from whisper_tui.cli.subcommand import Options, complain, home_of
from whisper_tui.model.errors import ChangedSinceSeen
from whisper_tui.wire.light_client import LightClient


def signing_key(options: Options) -> str:
    """Return the file of the key that signs. Empty: decisions are not signed. Raises `BadConfiguration`."""
    home = home_of(options)
    try:
        # pathlib takes as long to load as all else that `approve` needs.
        with open(f"{home.config}/config.toml", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return ""
    # Most people sign nothing, and need not wait until all of the configuration is checked.
    if b"evidence" not in text and b"\\" not in text:
        return ""
    from whisper_tui.config import load

    return load(home).evidence.sign


def signed(
    key: str, supervisor: LightClient, *, call_id: str, decision: dict[str, Any], by: dict[str, str], seen: str
) -> dict[str, Any]:
    """Return the proof of a decision, as JSON. Raises `WhisperError`; then nothing was decided."""
    import asyncio

    from pydantic import TypeAdapter
    from pydantic_core import to_json

    from whisper_tui.cli.decision_signer import DecisionSigner
    from whisper_tui.model.decision import Decider, Decision
    from whisper_tui.model.state import CallRecord

    record = CallRecord.model_validate_json(to_json(supervisor.ask("record", call_id=call_id)))
    if record.seen_digest() != seen:
        raise ChangedSinceSeen(f"call {call_id} has changed since it was shown", hint="Look at it again")
    decided: Decision = TypeAdapter(Decision).validate_json(to_json(decision))
    signing = DecisionSigner(key).sign(record, decided, Decider.model_validate(by), complain)
    return asyncio.run(signing).model_dump(mode="json")
