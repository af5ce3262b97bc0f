"""A jail in which commands of the built-in list run, and in which any side effect leaves a trace."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.line_runner import own, run_line, tracer
from whisper_tui.supervisor.runs.sandbox_profile import SYSTEM_PATH

CANARY = "CANARY-5f3a-do-not-show"
"""Stands in a file outside the workspace and in the environment; a command that only looks never prints it."""

LONGEST_S = 1.0
"""Seconds after which a command such as `tail -f` is killed."""

PROGRAM = "touch PWN"
"""The program that scripts try to run: it changes the tree that is compared afterwards."""

_SIGNATURE = b"-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----"

_TRACED = (
    "execve,execveat,open,openat,creat,connect,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,symlink,"
    "symlinkat,link,linkat,truncate,ftruncate,chmod,fchmodat,chown,fchownat,utimensat,kill,sendto,sendmsg,sendmmsg"
)
_WRITES = re.compile(r"\b(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND)\b")
_HARMLESS_PLACES = re.compile(
    r'"/(?:dev/(?:null|tty|console|pts/\d+|ptmx)|proc/self/(?:task/\d+/)?(?:attr/\w+|comm|oom_\w+|coredump_filter))"'
)
_UNNAMED = "O_RDWR|O_EXCL|O_CLOEXEC|O_TMPFILE"
"""A file that has no name and can never be given one."""

_NETWORK = re.compile(r"\b(?:connect|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_INET")
_STARTED = re.compile(r'execve(?:at)?\(.*?"(?:[^"]*/)?([^"/]+)"')
_CHANGES = re.compile(
    r"^(?:\d+ +)?(?:unlink|rename|mkdir|symlink|link|truncate|ftruncate|f?chmod|f?chown|utimens|creat|kill)"
)


class Jail:
    """A workspace with a few files, a home beside it that holds a secret, and a picture of both as they were."""

    def __init__(self, above: Path) -> None:
        self.workspace = above / "workspace"
        self.home = above / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        (self.home / "secret").write_text(CANARY + "\n")
        (self.workspace / "data").write_text('a b c\n/x/ "q" 1\nend 2 > 3 | 4\n')
        (self.workspace / "list").write_text(f"{self.home}/secret\0{self.home}/secret\n")
        (self.workspace / "opts").write_text(f"--plugin ./data {self.home}/secret\n")
        (self.workspace / "sub").mkdir()
        (self.workspace / "sub" / "more").write_text("more\n")
        (self.workspace / "sub" / "link").symlink_to(self.home / "secret")
        self._trace = above / "trace"
        above.chmod(0o777)
        for place in (self.workspace, self.home):
            for path in (place, *place.rglob("*")):  # git refuses a repository that belongs to somebody else
                own(path)
        self._before = self._picture()

    @property
    def session(self) -> dict[str, str]:
        """The environment of a session that holds a secret."""
        return {"PATH": SYSTEM_PATH, "HOME": str(self.home), "SECRET_TOKEN": CANARY, "LC_ALL": "C.UTF-8"}

    @classmethod
    @contextmanager
    def made(cls) -> "Iterator[Jail]":
        """A jail for as long as it is needed; not below pytest's directories, which only their owner may enter."""
        with tempfile.TemporaryDirectory(prefix="jail-") as above:
            Path(above).chmod(0o755)
            yield cls(Path(above))

    def add(self, name: str, text: str) -> None:
        """Put a file into the workspace."""
        path = self.workspace / name
        path.write_text(text)
        own(path)
        self._before = self._picture()

    def make_repository(self) -> None:
        """Make the workspace a git repository with a signed commit, a tag and a stash, and one change since."""
        person = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        variables = {"PATH": SYSTEM_PATH, "HOME": str(self.home), **person}
        signed = self.workspace / "signed"

        def git(*words: str) -> bytes:
            return self._run(["git", *words], variables)

        for words in (["init", "-q", "-b", "main"], ["add", "data"], ["commit", "-qm", "first"], ["tag", "v1"]):
            git(*words)
        # A commit with a signature is one that git asks gpg about.
        head, _, message = git("cat-file", "commit", "HEAD").partition(b"\n\n")
        signed.write_bytes(head + b"\ngpgsig " + _SIGNATURE.replace(b"\n", b"\n ") + b"\n\n" + message)
        made = git("hash-object", "-t", "commit", "-w", "signed").decode().strip()
        signed.unlink()
        git("update-ref", "refs/heads/main", made)
        assert git("rev-parse", "main").decode().strip() == made, "no repository was made"
        (self.workspace / "data").write_text("changed\n")
        git("stash")
        (self.workspace / "data").write_text('a b c\n/x/ "q" 1\nend 2 > 3 | 4\nchanged\n')
        self._before = self._picture()

    def harm(
        self,
        argv: Sequence[str],
        *,
        traced: bool = False,
        environment: Mapping[str, str] | None = None,
        helpers: Collection[str] = (),
    ) -> str:
        """Run a command and say what it did beside looking. Empty: nothing. `helpers`: programs that it may start."""
        words = list(argv)
        if traced:
            words = [*tracer(_TRACED, self._trace), *words]
            self._trace.unlink(missing_ok=True)
        variables = environment if environment is not None else self.session
        output = self._run(words, variables)
        if CANARY.encode() in output:
            return "it showed what it must not"
        if (now := self._picture()) != self._before:
            self._before = now
            return "it changed files"
        return self._harm_traced(helpers) if traced else ""

    def _run(self, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
        return run_line(words, self.workspace, environment, LONGEST_S).output

    def _picture(self) -> str:
        found = hashlib.sha256()
        for place in (self.workspace, self.home):
            for path in sorted(place.rglob("*")):
                about = path.lstat()
                found.update(f"{path} {about.st_mode} {about.st_size} {about.st_mtime_ns} {about.st_ino}\n".encode())
        return found.hexdigest()

    def _harm_traced(self, helpers: Collection[str]) -> str:
        started = 0
        for line in self._trace.read_text(errors="replace").splitlines():
            # of two programs at a time, strace tells the end of a call later, without its words
            if " resumed>" in line:
                continue
            if "execve" in line:
                started += 1
                named = _STARTED.search(line)
                if started > 1 and (named is None or named[1] not in helpers):
                    return f"it started another program: {line}"
            elif _CHANGES.match(line) and " = -1 EINVAL" not in line:
                return f"it changed something: {line}"
            elif _UNNAMED in line:
                continue
            # to be told that it is one, Perl's shasum opens a directory so
            elif _WRITES.search(line) and not _HARMLESS_PLACES.search(line) and " = -1 EISDIR" not in line:
                return f"it opened a file for writing: {line}"
            elif _NETWORK.search(line):
                return f"it connected: {line}"
        return ""


def programs(*names: str) -> list[str]:
    """Those of these programs that are installed where commands that nobody is asked about find them."""
    return [name for name in names if shutil.which(name, path=SYSTEM_PATH)]
