"""The archive of what runs at a place, and the loader that brings it there over the first bytes of a connection."""

import base64
import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import whisper_tui

PARTS = (
    "__init__.py",
    "agents/__init__.py",
    "agents/known_clients.py",
    "agents/model_instructions.py",
    "model/__init__.py",
    "model/errors.py",
    "system/process_names.py",
    "model/protocol_version.py",
    "model/strict_json.py",
    "model/text.py",
    "supervisor/__init__.py",
    "supervisor/keeper/*.py",
    "supervisor/places/__init__.py",
    "supervisor/places/far_*.py",
    "supervisor/places/frames.py",
    "system/__init__.py",
    "system/ancestry.py",
    "system/bpf.py",
    "system/confinement.py",
    "system/host_files.py",
    "system/landlock_rules.py",
    "system/processes.py",
    "system/run_files.py",
    "system/syscalls.py",
    "transports/__init__.py",
    "transports/json_lines.py",
    "transports/mcp/__init__.py",
    "transports/mcp/relay.py",
)
"""The files of the package that run there. All of them are satisfied with the standard library."""
_SAME_TIME = (1980, 1, 1, 0, 0, 0)

LOADER = r"""
import sys
def say(**told):
    text = json.dumps(told).encode()
    os.write(1, struct.pack(">II", len(text), 0) + text)
def whole(path):
    try:
        with open(path, "rb") as file: data = file.read()
    except OSError: return b""
    return data if hashlib.sha256(data).hexdigest() == digest else b""
import hashlib, json, os, struct, time
mode, base, near, digest, size = sys.argv[1:6]
if mode not in ("serve", "stay"): os.write(1, b"\n\0whisper-tui-place\0")
if sys.version_info < (3, 11):
    say(failed="Python is %d.%d there, and 3.11 is needed" % sys.version_info[:2]); sys.exit(3)
home = base or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "whisper-tui")
path = os.path.join(home, "place-%s.pyz" % digest)
try:
    os.makedirs(home, 0o700, exist_ok=True)
    status = os.stat(home)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        say(failed="others than the user can write to %s there" % home); sys.exit(3)
    waited = 0
    while not whole(path):
        if mode in ("serve", "stay"):
            waited += 1
            if waited > 1200: sys.exit(3)
            time.sleep(0.1); continue
        say(needs=digest)
        data = bytearray()
        while len(data) < int(size):
            piece = os.read(0, int(size) - len(data))
            if not piece: sys.exit(3)
            data += piece
        made = "%s.%d" % (path, os.getpid())
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(fd, "wb") as file: file.write(data)
            os.rename(made, path)
        except OSError:
            os.unlink(made); raise
except OSError as error:
    say(failed="%s cannot be used there: %s" % (home, error.strerror)); sys.exit(3)
sys.path.insert(0, path)
from whisper_tui.supervisor.places.far_bridge import main
main(mode, base, near, path, *sys.argv[6:])
"""
"""Runs there by `python -c`. It makes the archive from standard input if it is not there, and becomes a mode of it.

Old versions of Python read it as well, to say that they are too old.
"""


class FarPackage(NamedTuple):
    """The archive, and its name by its content."""

    data: bytes
    digest: str

    def argv(self, python: str, mode: str, base: str, near: str) -> list[str]:
        """Return the command line that runs a mode at a place. It has no character that any shell reads."""
        # A shell there reads the words, perhaps one whose quotes do not go over several lines.
        loader = base64.b64encode(LOADER.encode()).decode()
        program = f"import base64;exec(base64.b64decode('{loader}'))"
        return [python, "-I", "-S", "-c", program, mode, base, near, self.digest, str(len(self.data))]


@cache
def far_package() -> FarPackage:
    """Return the archive of this version. The same files make the same bytes."""
    root = Path(whisper_tui.__file__).parent
    made = io.BytesIO()
    # Without compression: the bytes do not depend on a version of zlib, and it is sent once.
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for part in PARTS:
            for path in sorted(root.glob(part)):
                name = zipfile.ZipInfo(f"whisper_tui/{path.relative_to(root)}", _SAME_TIME)
                archive.writestr(name, path.read_bytes())
    data = made.getvalue()
    return FarPackage(data, hashlib.sha256(data).hexdigest())
