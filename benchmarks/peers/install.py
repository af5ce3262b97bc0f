"""Installs the peers into `.peers`, once, at fixed versions, with npm, pip and apt.

Nothing outside that directory changes. A peer that cannot be had costs its rows of the comparison and nothing else; it
is tried again the next time.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".peers"

_LIMIT_S = 900


class NotInstalled(Exception):
    """A peer could not be installed; the message says why, in words for the table."""


class Peer(NamedTuple):
    """A program that is compared."""

    name: str
    source: Literal["npm", "PyPI", "Debian"]
    package: str
    version: str
    program: str
    """Its path below the directory of the peer."""


PEERS = (
    Peer("mcp-server-commands", "npm", "mcp-server-commands", "0.5.0", "node_modules/.bin/mcp-server-commands"),
    Peer(
        "desktop-commander", "npm", "@wonderwhy-er/desktop-commander", "0.2.52", "node_modules/.bin/desktop-commander"
    ),
    Peer("mcp-shell-server", "PyPI", "mcp-shell-server", "1.1.14", "bin/mcp-shell-server"),
    Peer("task-spooler", "Debian", "task-spooler", "1.0.1+dfsg1-1", "usr/bin/tsp"),
    Peer("nq", "Debian", "nq", "0.3.1-4", "usr/bin/nq"),
)
NOT_TO_BE_HAD = {
    "pueue": "not measured: Debian 12, npm and PyPI do not have it",
    "tmux-mcp": "not measured: npm no longer has it, and PyPI's program of that name runs no command to its result",
}


def program(name: str, place: Path = PLACE) -> str:
    """The path of a peer's program."""
    (peer,) = (peer for peer in PEERS if peer.name == name)
    return str(place / peer.name / peer.program)


def install(peer: Peer, place: Path = PLACE) -> None:
    """Install a peer if it is not there in its version. Raises `NotInstalled`."""
    directory = place / peer.name
    mark = directory / "installed"
    if mark.exists() and mark.read_text() == peer.version:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    match peer.source:
        case "npm":
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
            _run(peer, directory, ("npm", "install", "--prefix", ".", *options, f"{peer.package}@{peer.version}"))
        case "PyPI":
            _run(peer, directory, (sys.executable, "-m", "venv", "."))
            pip = (str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            _run(peer, directory, (*pip, f"{peer.package}=={peer.version}"))
        case "Debian":
            _run(peer, directory, ("apt-get", "download", f"{peer.package}={peer.version}"))
            for package in directory.glob("*.deb"):
                _run(peer, directory, ("dpkg-deb", "-x", package.name, "."))
    if not (directory / peer.program).exists():
        raise NotInstalled(f"{peer.source} has {peer.package} {peer.version}, but not its program")
    mark.write_text(peer.version)


def install_all(place: Path = PLACE) -> dict[str, str]:
    """Install what can be had. Returns why the others are missing, by their names."""
    missing = dict(NOT_TO_BE_HAD)
    for peer in PEERS:
        try:
            install(peer, place)
        except NotInstalled as error:
            missing[peer.name] = f"not measured: {error}"
    return missing


def _run(peer: Peer, directory: Path, argv: Sequence[str]) -> None:
    """One step; what it says goes into a file. Raises `NotInstalled`."""
    if shutil.which(argv[0]) is None:
        raise NotInstalled(f"{argv[0]} was not found here")
    log = directory / "install.log"
    with log.open("ab") as said:
        try:
            subprocess.run(
                argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=_LIMIT_S, check=True
            )
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"{argv[0]} was not done after {_LIMIT_S} s") from None
        except subprocess.CalledProcessError:
            sys.stderr.write(f"{peer.name} could not be installed; {log} says why.\n")
            raise NotInstalled(f"{peer.source} did not give {peer.package} {peer.version}") from None
