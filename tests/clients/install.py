"""Installs the agent clients that these tests drive, from npm, at fixed versions, into `.clients`, once.

Run as a program it installs them and names those that it could not install. It needs npm, of any Node.js; the clients
get a Node.js of their own. Each client is installed by itself, so that one that cannot be had keeps no other away.
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
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".clients"
PACKAGES = Path(__file__).resolve().parent / "npm"
"""For each part, what npm installs and the exact versions of what that needs."""

NODE = "node"
"""The part with whose Node.js npm installs the clients, and on which they run."""

CLIENTS = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "kimi": "@moonshot-ai/kimi-code",
    "opencode": "opencode-ai",
    "copilot": "@github/copilot",
    "qwen": "@qwen-code/qwen-code",
    "kilo": "@kilocode/cli-linux-x64",
    "claude-agent-acp": "@agentclientprotocol/claude-agent-acp",
    "codex-acp": "@agentclientprotocol/codex-acp",
}
"""The clients, and the packages that they are in. Each is a part of its own, and a program of that name.

The last two are the agents of editors that Claude Code and Codex are in; they bring a Claude Code and a Codex of their
own. `@kilocode/cli` itself asks for platform packages that are not there.
"""

OWN_DIRECTORIES = {"kilo": "@kilocode/cli-linux-x64/bin"}
"""Where the program is, below `node_modules`, in packages that do not say so to npm."""

PARTS = {NODE: "node"} | CLIENTS

NPM_S = 900.0
"""Seconds that npm has for everything; the clients are fetched side by side."""

ANSWER_S = 60
"""Seconds that a program has to say its version."""


class NotInstalled(Exception):
    """A part could not be installed; the message says why and what to do."""


def directories(place: Path = PLACE) -> tuple[Path, ...]:
    """Where the installed programs are, in the order for PATH."""
    return tuple(place / part / "node_modules" / ".bin" for part in (*CLIENTS, NODE))


def is_complete(part: str, place: Path = PLACE) -> bool:
    """Whether a part is there, in the version that is asked for."""
    try:
        return _mark(part, place).read_text() == _asked(part)
    except OSError:
        return False


def missing(place: Path = PLACE) -> list[str]:
    """The clients that cannot be tested."""
    return [client for client in CLIENTS if not (is_complete(client, place) and is_complete(NODE, place))]


def install(
    place: Path = PLACE, environ: Mapping[str, str] = os.environ, *, within_s: float = NPM_S
) -> dict[str, NotInstalled]:
    """Install what is not there yet. Returns the clients that could not be installed. Raises `NotInstalled` for all.

    However many ask at once, one installs and the others wait for it.
    """
    if not missing(place):
        return {}
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise NotInstalled("npm was not found. Install Node.js of any version, which brings npm, and try again.")
    place.mkdir(parents=True, exist_ok=True)
    with _turn(place):
        deadline = time.monotonic() + within_s
        path = os.pathsep.join((*map(str, directories(place)), environ.get("PATH", "")))

        def attempt(part: str) -> NotInstalled | None:
            try:
                _install_part(npm, part, place, {**environ, "PATH": path}, deadline)
            except NotInstalled as problem:
                return problem
            return None

        if (problem := attempt(NODE)) is not None:
            raise problem
        wanted = missing(place)
        with ThreadPoolExecutor(len(CLIENTS)) as workers:
            problems = dict(zip(wanted, workers.map(attempt, wanted), strict=True))
    return {client: problem for client, problem in problems.items() if problem is not None}


def versions() -> dict[str, str]:
    """The version of each program that is asked for."""
    return {
        part: json.loads((PACKAGES / part / "package.json").read_text())["dependencies"][package]
        for part, package in PARTS.items()
    }


def measured_codex() -> str:
    """Return the version of Codex as the doctor names it: the first two numbers."""
    return ".".join(versions()["codex"].split(".")[:2])


def _install_part(npm: str, part: str, place: Path, environ: Mapping[str, str], deadline: float) -> None:
    """Let npm install what the lock file says, and mark it as complete. Raises `NotInstalled`.

    `npm ci` is no good here: it refuses a lock file without the builds for other systems, which not every mirror has.
    """
    if is_complete(part, place):
        return
    _mark(part, place).unlink(missing_ok=True)
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
                timeout=max(0.0, deadline - time.monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            why = "npm was not done in time"
            raise NotInstalled(f"{part} could not be installed: {why}. It wrote {log}.") from None
    if done.returncode != 0:
        errors = re.findall(r"^npm (?:error|ERR!) (?!code )(.+)$", log.read_text(errors="replace"), re.MULTILINE)
        why = errors[0].rstrip(".") if errors else f"npm ended with exit code {done.returncode}"
        raise NotInstalled(f"{part} could not be installed: {why}. All that npm said is in {log}.")
    if part in OWN_DIRECTORIES:
        # The directory has other programs as well, which must not come before those of the machine.
        links = directory / "node_modules" / ".bin"
        links.mkdir(parents=True, exist_ok=True)
        if not (links / part).exists():
            (links / part).symlink_to(Path("..") / OWN_DIRECTORIES[part] / part)
    _check_version(part, place, environ["PATH"])
    _mark(part, place).write_text(_asked(part))


def _check_version(program: str, place: Path, path: str) -> None:
    """Ask a program for its version, in an empty home. Raises `NotInstalled`."""
    version = versions()[program]
    with tempfile.TemporaryDirectory() as home:
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


def _asked(part: str) -> str:
    """A fingerprint of everything that is asked for."""
    files = [PACKAGES / part / name for name in ("package.json", "package-lock.json")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def _mark(part: str, place: Path) -> Path:
    return place / f"{part}.complete"


@contextmanager
def _turn(place: Path) -> Iterator[None]:
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Install, and name what could not be installed."""
    if missing():
        sys.stderr.write(f"Installing the agent clients into {PLACE}: this needs a minute or two, once.\n")
    try:
        problems = install()
    except (NotInstalled, OSError) as error:
        sys.stderr.write(f"{error}\nSo no client is installed.\n")
        return 1
    for problem in problems.values():
        sys.stderr.write(f"{problem}\n")
    if problems:
        sys.stderr.write(f"Not installed: {', '.join(problems)}.\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
