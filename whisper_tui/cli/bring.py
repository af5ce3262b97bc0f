"""`bring`: install whisper_tui on another machine, or upgrade it there, over the user's own ssh.

The source of this module runs at both ends: Python there reads it from its standard input. So what it imports at its
head is the standard library alone. One connection carries all of it: the other end says what it finds, the human is
asked here, and only then the packages are sent.
"""

import fcntl
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from whisper_tui.cli.other_machines import SshHost
    from whisper_tui.cli.subcommand import Options
    from whisper_tui.model.errors import WhisperError

MARK = "whisper-tui bring: "
"""Begins each line that the other end has to say; a shell there may print lines of its own."""
GO = b"go\n"
NO_PYTHON = 96
"""Exit code of the shell there that finds no Python of a version that fits."""

_FIND_PYTHON = (
    'sh -c \'PATH="$HOME/.local/bin:$PATH:/usr/local/bin:/opt/homebrew/bin"; export PATH; '
    "for p in python3.13 python3.12 python3.11 python3; do "
    '$p -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))" </dev/null 2>/dev/null && '
    'exec $p -I -c "import sys; exec(sys.stdin.buffer.read(SIZE), {})"; done; exit CODE\''
)
"""Finds Python and lets it read this module. Quoted so that fish and csh hand it to `sh` like bash does."""


# At the other end. It has nothing but this module and the standard library.


class _Failed(Exception):
    """The reason why it did not work there, and what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def _base() -> Path:
    return Path.home() / ".local" / "share" / "whisper-tui"


def _link() -> Path:
    return Path.home() / ".local" / "bin" / "whisper-tui"


def serve(stdin: IO[bytes]) -> None:
    """Say what is there; after the word to go on, take the packages and install them."""
    order = json.loads(stdin.readline())
    try:
        _say(found=_look(order["name"]))
        if stdin.readline() == GO:
            _say(done=_install(order, stdin))
    except _Failed as error:
        _say(failed=str(error), hint=error.hint)
    except OSError as error:
        _say(failed=str(error), hint="")


def _say(**facts: Any) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write(f"\n{MARK}{json.dumps(facts)}\n")
        sys.stdout.flush()


def _look(name: str) -> dict[str, Any]:
    """Return what is installed. Changes nothing."""
    link = _link()
    now = _brought(link)
    found = shutil.which("whisper-tui")
    # Whoever has installed it in another way upgrades it in that way: two of them would be found by chance.
    other = str(link) if os.path.lexists(link) and now is None else found if found and not _brought(Path(found)) else ""
    return {
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
        "now": now or "",
        "other": other,
        "complete": _works(_base() / name),
    }


def _brought(link: Path) -> str | None:
    """Return the name of the installation that a link leads to. None: it is none of ours."""
    target = link.readlink() if link.is_symlink() else Path()
    return target.parts[-3] if target.parts[-2:] == ("bin", "whisper-tui") and target.is_relative_to(_base()) else None


def _works(place: Path) -> bool:
    """True if an installation can be used, with all its dependencies."""
    try:
        _run([place / "bin" / "python", "-c", "import whisper_tui.cli.cockpit_launcher, whisper_tui.supervisor.health"])
    except (OSError, _Failed):
        return False
    return True


def _run(command: Sequence[str | Path], hint: str = "") -> None:
    """Run a program. Raises `_Failed` with the last words of it."""
    # A configuration of pip that installs for the user would fail in an environment.
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PIP_USER": "0"},
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.strip()][-3:]
        raise _Failed(f"{Path(command[0]).name} failed: {' '.join(said)}", hint)


def _install(order: Mapping[str, Any], stdin: IO[bytes]) -> dict[str, str]:
    """Make the new installation beside the old one, and then let the link lead to it."""
    base, link = _base(), _link()
    base.mkdir(parents=True, exist_ok=True)
    place, before = base / order["name"], _brought(link) or ""
    with (base / ".lock").open("w") as lock, tempfile.TemporaryDirectory(dir=base, prefix=".new-") as arrived:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _Failed("somebody else brings it there at this moment", "Try again later") from None
        _receive(order["files"], stdin, Path(arrived))
        if not _works(place):
            shutil.rmtree(place, ignore_errors=True)
            try:
                _build(place, Path(arrived), order)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.symlink_to(place / "bin" / "whisper-tui")
    new.replace(link)
    return {"name": order["name"], "before": before}


def _receive(digests: Mapping[str, str], stdin: IO[bytes], folder: Path) -> None:
    """Write the files that were announced. Raises `_Failed` if one of them has not arrived whole."""
    got = {}
    with suppress(tarfile.TarError), tarfile.open(fileobj=stdin, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name in digests:
                data = content.read()
                got[member.name] = hashlib.sha256(data).hexdigest()
                (folder / Path(member.name).name).write_bytes(data)
    # An archive that was cut between two files ends like a whole one.
    if got != digests:
        raise _Failed("the packages have not arrived whole", "Try again")


def _build(place: Path, arrived: Path, order: Mapping[str, Any]) -> None:
    """Make an environment, and install the packages and their dependencies."""
    python, uv = place / "bin" / "python", shutil.which("uv")
    try:
        _run([sys.executable, "-I", "-m", "venv", place])
        installer: list[str | Path] = [
            python,
            "-I",
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
        ]
        installer += ["--quiet", "--retries", "1", "--no-compile"]
    except _Failed as error:
        if uv is None:
            # Debian and others leave out a part of Python's own library.
            raise _Failed(str(error), "Install uv there, or Python's venv (Debian: apt install python3-venv)") from None
        # Python has made one without pip before it found out, and uv replaces nothing.
        shutil.rmtree(place, ignore_errors=True)
        _run([uv, "venv", "--quiet", "--python", sys.executable, place])
        installer = [uv, "pip", "install", "--quiet", "--python", python]
    sources: list[str | Path] = ["--no-index", "--find-links", arrived] if order["offline"] else []
    _run([*installer, *sources, arrived / order["wheel"]], order["advice"])
    if not _works(place):
        raise _Failed("what was installed does not start", f"Try there: {place}/bin/whisper-tui --help")


# At the desk.

MOST_HEARD = 1 << 20
"""Bytes that are read from the other end until it has said what it finds, or has done."""
LONGEST_REASON = 2000
_ENDS_WITHIN_S = 10.0
_FACTS: dict[str, dict[str, type]] = {
    "found": {"python": str, "system": str, "now": str, "other": str, "complete": bool},
    "done": {"name": str, "before": str},
}
"""Facts that the other end states, and their types."""
_INSTALLATION = re.compile(r"[0-9A-Za-z.+_-]{1,100}")
"""Names of installations: one that comes from the other end becomes part of a command that a human may copy."""


def bring(options: "Options") -> int:
    """Install whisper_tui on the machine that the options name. Returns the exit code. Raises `WhisperError`."""
    from whisper_tui.cli.commands.manage_rules import check_outside
    from whisper_tui.cli.other_machines import ssh_host
    from whisper_tui.cli.subcommand import DONE, HERE, home_of
    from whisper_tui.config import load
    from whisper_tui.model.errors import InvalidRequest

    home = home_of(options)
    check_outside("bring", home)
    if options.host == HERE:
        raise InvalidRequest(f"{HERE!r} is this machine, on which whisper_tui is installed", hint="Name another one")
    host = ssh_host(load(home), options.host)
    order, files = _order(options.wheels)
    with _Conversation(host, order) as far:
        found = far.hears("found")
        if found["complete"] and found["now"] == order["name"]:
            sys.stdout.write(f"{host.name} has this very version of whisper_tui: nothing to do\n")
            return DONE
        if found["other"]:
            raise InvalidRequest(
                f"{host.name} has a whisper-tui that was installed in another way: {found['other']}",
                hint="Upgrade it there in that way, or remove it first",
            )
        if not _agreed(options, host.name, found, order):
            sys.stdout.write("Nothing was changed.\n")
            return DONE
        done = far.sends(files)
    _report(host, done)
    _see_that_it_runs(host)
    return DONE


def _order(folder: str | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what is asked of the other end, and the files that it needs for that."""
    from whisper_tui import __version__
    from whisper_tui.model.errors import InvalidRequest

    wheel, content = running_wheel()
    files = {wheel: content}
    if folder is not None:
        with suppress(OSError):
            files = {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.whl"))} | files
        if len(files) == 1:
            raise InvalidRequest(f"{folder} holds no packages (*.whl)", hint="See docs/hosts.md on how to fill it")
    return {
        "name": f"{__version__}-{hashlib.sha256(content).hexdigest()[:8]}",
        "wheel": wheel,
        "offline": folder is not None,
        "advice": "A package is missing in the directory of --wheels: see docs/hosts.md on how to fill it"
        if folder is not None
        else "If that machine reaches no package index, send the packages along: --wheels DIR",
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }, files


def running_wheel() -> tuple[str, bytes]:
    """Return the name and the content of a package of the program that runs. Raises `Unavailable`."""
    import base64
    import zipfile
    from importlib.metadata import PackageNotFoundError, distribution

    import whisper_tui
    from whisper_tui.model.errors import Unavailable

    try:
        about = distribution("whisper-tui")
    except PackageNotFoundError:
        raise Unavailable("this program was not installed as a package", hint="Install it with pip") from None
    version, package = whisper_tui.__version__, Path(whisper_tui.__file__).parent
    info = f"whisper_tui-{version}.dist-info"
    # An editable installation is older than its sources, and has its themes beside them.
    lines = (about.read_text("METADATA") or "").split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith("Version:"))
    lines[first] = f"Version: {version}"
    files = _files(package, "whisper_tui") | _files(package.parent / "themes", "whisper_tui/themes", ".toml")
    files[f"{info}/METADATA"] = "\n".join(lines).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: whisper_tui\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = (about.read_text("entry_points.txt") or "").encode()
    for name in ("LICENSE", "NOTICE"):
        files |= {f"{info}/licenses/{name}": text.encode() for text in [about.read_text(f"licenses/{name}")] if text}
    record = io.StringIO()
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.write(f"{name},sha256={digest},{len(data)}\n")
    record.write(f"{info}/RECORD,,\n")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, f"{info}/RECORD": record.getvalue().encode()}.items():
            # Without the time of day the same files are the same package.
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o100755 if data.startswith(b"#!") else 0o100644) << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
    return f"whisper_tui-{version}-py3-none-any.whl", made.getvalue()


def _files(folder: Path, name: str, suffix: str = "") -> dict[str, bytes]:
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob(f"*{suffix}"))
        if path.is_file() and "__pycache__" not in path.parts
    }


class _Conversation:
    """One connection to the other end, which runs this module."""

    def __init__(self, host: "SshHost", order: Mapping[str, Any]) -> None:
        self._host = host
        source = Path(__file__).read_bytes() + b"\n\nserve(sys.stdin.buffer)\n"
        far = _FIND_PYTHON.replace("SIZE", str(len(source))).replace("CODE", str(NO_PYTHON))
        from whisper_tui.cli.far_output import LastWords

        self._process = host.run(far)
        self._to, self._from = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        self._said = LastWords(cast(IO[bytes], self._process.stderr))
        self._send(source + json.dumps(order).encode() + b"\n")

    def __enter__(self) -> "_Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        from whisper_tui.cli.far_output import end

        with suppress(OSError):
            self._to.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        end(self._process)

    def _send(self, data: bytes) -> None:
        # That the other end is gone shows when it is listened to, with the reason.
        with suppress(BrokenPipeError):
            self._to.write(data)
            self._to.flush()

    def sends(self, files: Mapping[str, bytes]) -> dict[str, Any]:
        """Send the files, and return what was done with them. Raises `WhisperError`."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        self._send(GO + packed.getvalue())
        return self.hears("done")

    def hears(self, word: str) -> dict[str, Any]:
        """Return what the other end says next. Raises `WhisperError`."""
        from whisper_tui.model.errors import Unavailable

        left = MOST_HEARD
        while left > 0 and (line := self._from.readline(left)):
            left -= len(line)
            if line.startswith(MARK.encode()):
                return self._understood(word, line.removeprefix(MARK.encode()))
        if left <= 0:
            raise Unavailable(f"{self._host.name} has sent more than {MOST_HEARD:,} bytes of other text")
        raise self._lost(word)

    def _understood(self, word: str, said: bytes) -> dict[str, Any]:
        """Return one of the facts that the other end has sent. Raises `WhisperError`."""
        from whisper_tui.model.errors import Unavailable

        try:
            facts = json.loads(said)
            failed, found = facts.get("failed"), facts.get(word)
            sound = isinstance(failed, str) or all(isinstance(found[name], kind) for name, kind in _FACTS[word].items())
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            sound = False
        if not sound:
            raise Unavailable(f"the answer of {self._host.name} cannot be read", hint="Look at what its shell prints")
        if isinstance(failed, str):
            why, hint = failed[:LONGEST_REASON], str(facts.get("hint", ""))[:LONGEST_REASON]
            raise Unavailable(f"nothing was installed on {self._host.name}: {why}", hint=hint)
        return dict(found)

    def _lost(self, word: str) -> "WhisperError":
        from whisper_tui.cli.far_output import end
        from whisper_tui.model.errors import Unavailable

        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        why = self._said.line()
        end(self._process)
        code, name = self._process.wait(), self._host.name
        if code == NO_PYTHON:
            return Unavailable(
                f"{name} has no Python from 3.11 to 3.13, so nothing was installed", hint="Install one there"
            )
        why = why or f"ssh ended with exit code {code}"
        if word == "done":
            return Unavailable(
                f"the connection to {name} was lost while it installed, which is done whole or not at all: {why}",
                hint=f"Run whisper-tui bring {name} again",
            )
        return Unavailable(f"{name} is not reached, so nothing was installed: {why}", hint=self._host.advice(code))


def _agreed(options: "Options", name: str, found: Mapping[str, Any], order: Mapping[str, Any]) -> bool:
    """Say what would be done, and ask about it unless that was answered on the command line."""
    from whisper_tui.model.errors import InvalidRequest
    from whisper_tui.model.text import visible

    now = f"whisper_tui {found['now']}" if found["now"] else "no whisper_tui"
    source = "from the packages that are sent along" if order["offline"] else "from its package index"
    plan = (
        f"{name}: {found['system']}, Python {found['python']}, {now}\n"
        f"It gets whisper_tui {order['name']} with its dependencies {source}:\n"
        f"  ~/.local/share/whisper-tui/{order['name']}   an environment of Python\n"
        "  ~/.local/bin/whisper-tui   a link to the program\n"
        "A supervisor that runs there is replaced; its commands keep running, and calls keep waiting.\n"
    )
    sys.stdout.write(visible(plan, keep_lines=True))
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequest("there is nobody to ask, so nothing was changed", hint="Use --yes")
    sys.stdout.write("Do this? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _report(host: "SshHost", done: Mapping[str, str]) -> None:
    """Say what was done, what comes next, and how to undo it."""
    from whisper_tui.model.text import visible

    base, link = "~/.local/share/whisper-tui", "~/.local/bin/whisper-tui"
    connect = ""
    if _INSTALLATION.fullmatch(done["before"]):
        undo = f"ln -sfn {base}/{done['before']}/bin/whisper-tui {link}; whisper-tui restart"
    else:
        undo = f"whisper-tui stop; rm -r {base} {link}"
        # With its path: on many systems only a login shell has it in its PATH.
        connect = f"Connect its agent: ssh -t {host.name} '{link}' install CLIENT\n"
    told = f"Installed {base}/{done['name'][:100]} on {host.name}\n{connect}Undo it there: {undo}\n"
    sys.stdout.write(visible(told, keep_lines=True))


def _see_that_it_runs(host: "SshHost") -> None:
    """Start the program as `attach` does, and replace a supervisor of another version. Raises `WhisperError`."""
    from whisper_tui import __version__
    from whisper_tui.cli.far_output import Allowance, TooMuch, answer_of
    from whisper_tui.model.errors import Refused
    from whisper_tui.model.text import visible

    sys.stdout.flush()
    for words in (("--version",), ("restart", "--if-running")):
        try:
            answer = answer_of(host.command_line(*words, may_ask=sys.stdin.isatty()), Allowance(MOST_HEARD))
        except TooMuch as error:
            raise Refused(f"it is installed on {host.name}, which {error}") from None
        said = answer.out.decode(errors="replace")
        if answer.code or (words == ("--version",) and __version__ not in said):
            last = (answer.said or said).strip().rpartition("\n")[2][:LONGEST_REASON]
            raise Refused(
                f"it is installed on {host.name}, but `{host.command} {' '.join(words)}` there said: {last}",
                hint=f"Look at command in [hosts.{host.name}]; whisper-tui restart there replaces the supervisor",
            )
    sys.stdout.write(visible(said, keep_lines=True))
