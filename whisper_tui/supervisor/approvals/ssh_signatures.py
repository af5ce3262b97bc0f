"""Signatures of ssh keys, verified by OpenSSH's own program (decision 41)."""

import base64
import os
import re
import subprocess
import tempfile
from pathlib import Path

from whisper_tui.model.desk_proof import NAMESPACE, DeskProof, SshSignature, read_signature
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import visible

PROGRAM = "ssh-keygen"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
CHECK_S = 10.0
"""Seconds in which a signature is verified, or a key is read."""
_FINGERPRINT = re.compile(r"\bSHA256:[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])")


def program_missing() -> Unavailable:
    """Return the error of a machine without that program."""
    message = f"decisions are signed ([evidence] sign), and there is no program {PROGRAM}"
    return Unavailable(message, hint="Install OpenSSH's client")


def fingerprint_of(key: str) -> str:
    """Return the fingerprint of a key in a file. Blocks for a moment. Raises `Unavailable`."""
    path = str(Path(key).expanduser())
    found = _FINGERPRINT.search(_run("-l", "-E", "sha256", "-f", path).stdout.decode(errors="replace"))
    if found is None:
        raise Unavailable(
            f"decisions are signed here ([evidence] sign), and {visible(path)} holds no ssh key that can be read",
            hint="Correct the setting, or put the public key beside the private one; then whisper-tui restart",
        )
    return found[0]


def verified(proof: DeskProof) -> SshSignature:
    """Return the key that has signed. Blocks for a moment. Raises `ValueError` for a wrong signature, `Unavailable`."""
    read = read_signature(proof.signature)
    blob = base64.b64decode(proof.signature)
    lines = base64.encodebytes(blob).decode()
    with tempfile.NamedTemporaryFile("w", suffix=".sig") as file:
        file.write(f"{BEGIN}\n{lines}{END}\n")
        file.flush()
        told = _run("-Y", "check-novalidate", "-n", NAMESPACE, "-s", file.name, given=proof.statement.encode())
    found = _FINGERPRINT.search(told.stdout.decode(errors="replace"))
    if told.returncode or found is None or found[0] != read.fingerprint:
        raise ValueError(f"{PROGRAM} does not verify it")
    return read


def _run(*arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(
            (PROGRAM, *arguments),
            input=given,
            capture_output=True,
            timeout=CHECK_S,
            check=False,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise program_missing() from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{PROGRAM} gave no answer: {error}", hint="Try again") from None
