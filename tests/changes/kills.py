"""Kill a transition before one of its changing calls, then resume it: the result must be all of it, or nothing.

`python -m tests.changes.kills --every 1` kills before each call; `--random N` previews N random sequences
and kills each at a random call.
"""

import argparse
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from tests.changes.overlay import Described, in_child, previewed, seen_by_owner
from tests.changes.random_runs import linked_names, without_links
from tests.changes.random_work import RandomWork, has_twin, make_tree
from tests.changes.trees import as_nobody, public_directory
from whisper_tui.changes import transition
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.system import syscalls

CHANGING = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename", "os.rmdir",
    "os.setxattr", "os.symlink", "os.truncate", "os.utime", "fcntl.ioctl",
}  # fmt: skip
UNAUDITED = ("write", "copy_file_range", "mknod")
LARGE = 1_200_000


class _Countdown:
    """Kills this process before its nth changing call."""

    def __init__(self, calls: int) -> None:
        self._left = calls

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGING or (event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
            self.count()

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.count()
            return function(*arguments, **named)

        return counted

    def count(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def is_killed(calls: int, work: Callable[[], object]) -> bool:
    """Do something in a child that is killed before one of its changing calls. False: it makes no more of them."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            countdown = _Countdown(calls)
            for name in UNAUDITED:
                setattr(os, name, countdown.before(getattr(os, name)))
            syscalls.call = countdown.before(syscalls.call)
            sys.addaudithook(countdown.audit)
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), f"before call {calls}: the transition failed"
    return code != 0


def make_all_kinds(top: Path) -> None:
    """Make a tree in which `change_all_kinds` finds what it changes."""
    (top / "below" / "deeper").mkdir(parents=True)
    names = (
        "written",
        "replaced",
        "removed",
        "chmodded",
        "becomes_directory",
        "below/inner",
        "below/deeper/x",
        "renamed",
    )
    for name in names:
        (top / name).write_text(f"old {name}\n" * 10)
    os.setxattr(top / "written", "user.note", b"old")
    (top / "large").write_bytes(b"x" * LARGE)
    (top / "becomes_file").mkdir()
    (top / "becomes_file" / "inside").write_text("inside")
    (top / "below" / "soft").symlink_to("inner")
    (top / "anew").mkdir()
    (top / "anew" / "old").write_text("old")
    (top / "shut").mkdir()
    (top / "shut" / "inner").write_text("inner")
    (top / "shut").chmod(0o555)


def change_all_kinds() -> None:
    """Make each kind of change in the current directory."""
    for name in ("written", "large"):
        with open(name, "a") as file:
            file.write("more\n")
    Path("new~").write_text("new\n")
    os.rename("new~", "replaced")
    os.unlink("removed")
    os.rename("renamed", "below/with another name")
    os.chmod("chmodded", 0o751)
    os.setxattr("chmodded", "user.new", b"new")
    os.unlink("becomes_directory")
    os.mkdir("becomes_directory", 0o500)
    for path in ("becomes_file/inside", "below/deeper/x", "below/soft", "anew/old"):
        os.unlink(path)
    os.rmdir("becomes_file")
    Path("becomes_file").write_text("a file now")
    os.rmdir("below/deeper")
    os.rmdir("anew")
    os.mkdir("anew", 0o700)
    Path("anew/new").write_text("new")
    os.makedirs("tree/a/b")
    Path("tree/a/file").write_text("file\n" * 1000)
    os.link("tree/a/file", "tree/a/b/twin")
    os.link("tree/a/file", "outside")
    os.link("below/inner", "tree/a/real")
    os.link("chmodded", "further")
    os.symlink("a", "tree/soft")
    os.mkfifo("tree/fifo")
    os.chmod("tree/a", 0o500)
    os.chmod("tree", 0o550)
    os.chmod("shut", 0o755)
    os.unlink("shut/inner")
    Path("shut/outer").write_text("outer")
    os.chmod("shut", 0o500)
    os.utime("shut", (7, 7))


class Scene:
    """A previewed directory, its store, and what both directions have to lead to."""

    def __init__(self, real: Path, kept: Path, make: Callable[[Path], None], work: Callable[[], None]) -> None:
        self.top, self.store = real / "real", str(kept / "store")
        make(self.top)
        self._same = real.stat().st_dev == kept.stat().st_dev
        self.before = self.described()
        self.after = previewed(kept / "store", self.top, work)
        read_changes(self.store)

    def described(self) -> Described:
        """Describe the real tree, with inodes if its files are kept by renames."""
        return seen_by_owner(self.top, inodes=self._same)

    def expect(self, state: str, wanted: Described, *, applied: bool) -> None:
        """Check the real files: the state in the store must be true."""
        assert transition.load_plan(self.store).state == state
        found = self.described() if not applied else seen_by_owner(self.top)
        # Without an index, an overlay shows the names of one file as different ones.
        linked = linked_names(found) if os.getuid() else set()
        one, other = (without_links(each, linked) for each in (found, wanted)) if applied else (found, wanted)
        assert one == other, [
            (name, one.get(name), other.get(name))
            for name in one.keys() | other.keys()
            if one.get(name) != other.get(name)
        ]


def kill_apply(scene: Scene, calls: int) -> bool:
    """Kill an application, resume it, then undo it. False: it ended before that call."""
    killed = is_killed(calls, lambda: transition.apply(scene.store))
    plan = in_child(lambda: transition.resume(scene.store))
    if plan.state == "previewed":
        scene.expect("previewed", scene.before, applied=False)
        transition.apply(scene.store)
    scene.expect("applied", scene.after, applied=True)
    transition.undo(scene.store)
    scene.expect("undone", scene.before, applied=False)
    return killed


def kill_undo(scene: Scene, calls: int) -> bool:
    """Kill an undo, resume it, then apply again. False: it ended before that call."""
    transition.apply(scene.store)
    killed = is_killed(calls, lambda: transition.undo(scene.store))
    plan = in_child(lambda: transition.resume(scene.store))
    if plan.state == "applied":
        scene.expect("applied", scene.after, applied=True)
        transition.undo(scene.store)
    scene.expect("undone", scene.before, applied=False)
    transition.apply(scene.store)
    scene.expect("applied", scene.after, applied=True)
    return killed


def kill_redo_of_a_part(scene: Scene, calls: int) -> bool:
    """Undo every other change, kill the redo of these, then redo and undo all. False: it ended before that call."""
    transition.apply(scene.store)
    paths = sorted({change.path for change in transition.load_plan(scene.store).changes})
    for path in paths[::2]:
        if transition.load_plan(scene.store).state == "applied":
            with suppress(transition.TransitionFailed):
                transition.undo_only(scene.store, [path])
    killed = is_killed(calls, lambda: transition.apply(scene.store))
    in_child(lambda: transition.resume(scene.store))
    transition.apply(scene.store)
    scene.expect("applied", scene.after, applied=True)
    transition.undo(scene.store)
    scene.expect("undone", scene.before, applied=False)
    return killed


def kill_each(kill: Callable[[Scene, int], bool], other: str | None, first: int = 0, every: int = 1) -> int:
    """Kill before every nth call, in a new scene each. Return how many were killed."""
    calls = first
    while True:
        with public_directory() as real, public_directory(other) as kept:
            if not kill(Scene(real, kept, make_all_kinds, change_all_kinds), calls):
                return (calls - first) // every
        calls += every


def kill_at_random(seed: int) -> bool:
    """Preview a random sequence, and kill one direction, or a redo of a part, at a random call. False: it ended."""
    chance = random.Random(seed)
    seed += has_twin(seed)  # overlays separate its names, so that what was seen is not what is applied
    kill, calls = chance.choice((kill_apply, kill_undo, kill_redo_of_a_part)), chance.randrange(80)
    with public_directory(chance.choice((None, "/dev/shm"))) as real, public_directory() as kept:
        return kill(Scene(real, kept, lambda top: make_tree(seed, top), RandomWork(seed, 10)), calls)


def failures_of_random_kills(runs: int, first: int | None = None) -> list[int]:
    """Kill random sequences that were never run before, or a certain one. Return the seeds of those that fail."""
    seeds = [first] if first is not None else random.SystemRandom().sample(range(10**9), runs)
    failed, killed = [], 0
    for seed in seeds:
        try:
            killed += kill_at_random(seed)
        except Exception:  # noqa: BLE001 - whatever it is, the seed has to be named
            failed.append(seed)
            print(f"seed {seed}:")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(seeds)} random sequences, {killed} killed, {len(failed)} failed: {failed}", flush=True)
    return failed


def main() -> None:
    """Kill as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--random", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--user", choices=("root", "nobody"), default="root" if os.getuid() == 0 else "nobody")
    options = parser.parse_args()
    with mock.patch.object(transition, "flush_file_system"):
        if options.user == "root" or os.getuid():
            _kill(options)
            return
        os.chdir("/")
        with as_nobody() as status:
            if status.child:
                _kill(options)
        sys.exit(status.code)


def _kill(options: argparse.Namespace) -> None:
    if options.every:
        for kill in (kill_apply, kill_undo):
            for other in (None, "/dev/shm"):
                print(
                    kill.__name__,
                    other or "same file system",
                    kill_each(kill, other, options.first, options.every),
                    flush=True,
                )
    if options.random or options.seed is not None:
        assert not failures_of_random_kills(options.random or 1, options.seed)


if __name__ == "__main__":
    main()
