"""Real ssh keys for signed decisions."""

import shutil
import subprocess
from pathlib import Path

import pytest

needs_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


def new_key(directory: Path, name: str = "id", passphrase: str = "") -> Path:
    """Make a key in a directory; returns the file of its private half."""
    path = directory / name
    words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "a test", "-f", str(path))
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def fido_signature(flags: int) -> bytes:
    """What a FIDO key would have written: the form alone, without a valid signature."""

    def text(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    kind = b"sk-ssh-ed25519@openssh.com"
    key = text(kind) + text(b"k" * 32) + text(b"ssh:")
    signed = text(kind) + text(b"s" * 64) + bytes([flags]) + (7).to_bytes(4, "big")
    fields = (key, b"whisper-tui-decision", b"", b"sha512", signed)
    return b"SSHSIG\x00\x00\x00\x01" + b"".join(map(text, fields))
