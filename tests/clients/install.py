"""Installs the agent clients that these tests drive, from npm, at fixed versions, into `.clients`, once.

Run as a program it installs them and says so. It needs npm, of any Node.js; the clients get a Node.js of their own.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".clients"
PACKAGES = Path(__file__).resolve().parent / "npm"
"""For each part, what npm installs and the exact versions of what that needs."""

PARTS = ("node", "clients")
"""In the order of installation: npm installs the clients with the Node.js of the first part."""

PROGRAMS = {
    "node": "node",
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}
"""The programs, and the packages that they are in."""

NPM_S = 240
"""Seconds that npm has for one part."""

ANSWER_S = 60
"""Seconds that a program has to say its version."""


class NotInstalled(Exception):
    """The clients could not be installed; the message says why and what to do."""


def directories(place: Path = PLACE) -> tuple[Path, ...]:
    """Where the installed programs are, in the order for PATH."""
    return tuple(place / part / "node_modules" / ".bin" for part in reversed(PARTS))


def is_complete(place: Path = PLACE) -> bool:
    """Whether everything is there, in the versions that are asked for."""
    try:
        return _mark(place).read_text() == _asked()
    except OSError:
        return False


def install(place: Path = PLACE, environ: Mapping[str, str] = os.environ) -> bool:
    """Install what is not there yet. Returns whether there was anything to do. Raises `NotInstalled`.

    However many ask at once, one installs and the others wait for it.
    """
    if is_complete(place):
        return False
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise NotInstalled("npm was not found. Install Node.js of any version, which brings npm, and try again.")
    place.mkdir(parents=True, exist_ok=True)
    with _turn(place):
        if is_complete(place):
            return False
        _mark(place).unlink(missing_ok=True)
        path = os.pathsep.join((*map(str, directories(place)), environ.get("PATH", "")))
        for part in PARTS:
            _install_part(npm, part, place, {**environ, "PATH": path})
        _check_versions(place, path)
        _mark(place).write_text(_asked())
    return True


def versions() -> dict[str, str]:
    """The version of each program that is asked for."""
    asked: dict[str, str] = {}
    for part in PARTS:
        asked |= json.loads((PACKAGES / part / "package.json").read_text())["dependencies"]
    return {program: asked[package] for program, package in PROGRAMS.items()}


def _install_part(npm: str, part: str, place: Path, environ: Mapping[str, str]) -> None:
    """Let npm install what the lock file says. Raises `NotInstalled`.

    `npm ci` is no good here: it refuses a lock file without the builds for other systems, which not every mirror has.
    """
    directory = place / part
    directory.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PACKAGES / part / name, directory / name)
    log = place / f"{part}.log"
    with log.open("w") as written:
        try:
            done = subprocess.run(
                [npm, "install", "--no-audit", "--no-fund", "--loglevel", "warn"],
                cwd=directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                timeout=NPM_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            why = f"npm was not done after {NPM_S} seconds"
            raise NotInstalled(f"The {part} for the tests could not be installed: {why}. It wrote {log}.") from None
    if done.returncode != 0:
        errors = re.findall(r"^npm (?:error|ERR!) (?!code )(.+)$", log.read_text(errors="replace"), re.MULTILINE)
        why = errors[0].rstrip(".") if errors else f"npm ended with exit code {done.returncode}"
        raise NotInstalled(f"The {part} for the tests could not be installed: {why}. All that npm said is in {log}.")


def _check_versions(place: Path, path: str) -> None:
    """Ask every program for its version, in an empty home. Raises `NotInstalled`."""
    with tempfile.TemporaryDirectory() as home:
        for program, version in versions().items():
            said = _version(program, {"HOME": home, "PATH": path, "LANG": "C.UTF-8"})
            if version not in said:
                raise NotInstalled(
                    f"{program} was installed in {place}, but does not say that it is version {version}. "
                    f"It said: {said.strip() or 'nothing'}. Remove {place} and try again."
                )


def _version(program: str, environ: Mapping[str, str]) -> str:
    found = shutil.which(program, path=environ["PATH"])
    if found is None:
        return "it is not there"
    try:
        done = subprocess.run(
            [found, "--version"], env=environ, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout or done.stderr


def _asked() -> str:
    """A fingerprint of everything that is asked for."""
    files = [PACKAGES / part / name for part in PARTS for name in ("package.json", "package-lock.json")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def _mark(place: Path) -> Path:
    return place / "complete"


@contextmanager
def _turn(place: Path) -> Iterator[None]:
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Install, and say what is there."""
    if not is_complete():
        sys.stderr.write(f"Installing the agent clients into {PLACE}: this needs a minute or two, once.\n")
    try:
        install()
    except (NotInstalled, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
