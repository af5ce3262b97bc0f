"""Each way to preview a command, with real processes, as root and as an ordinary user.

What it shows is what a real run makes, nothing outside changes, and what cannot be shown keeps it from being applied.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.changes.trees import NOBODY, as_nobody, described, public_directory
from tests.outside import needs_overlays, needs_sandbox
from whisper_tui.changes import transition
from whisper_tui.changes.change_records import Plan
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.supervisor.keeper.limited_start import PreviewedCommand
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.preview import confined, overlay_mounts, preview_process, preview_ways
from whisper_tui.supervisor.preview.confined import is_copy, leaks_of, read_copy
from whisper_tui.supervisor.preview.machine_places import MOST_SHOWN
from whisper_tui.supervisor.preview.overlay_mounts import BIND, NoPreview
from whisper_tui.supervisor.preview.preview_process import PreviewStart, command_line
from whisper_tui.supervisor.preview.preview_ways import BUBBLEWRAP, COPY, OVERLAY, READ_ONLY, start
from whisper_tui.system import syscalls

pytestmark = needs_sandbox

SYSTEM_PYTHON = "/usr/bin/python3"
"""A Python that an ordinary user can start, unlike one in the home of root."""
NEWNS, PRIVATE_ALL, NOSUID = 0x20000, 16384 | (1 << 18), 2
NO_MOUNTS = 77
"""The exit code of a child that may not mount anything."""
FILES = """
mkdir -p 'with space/deep' plain; echo one > plain/a; echo two > 'with space/deep/b'; echo gone > gone; seq 9999 > long
printf x > "$(printf 'line\\nbreak')"; ln -s plain/a link; echo hard > h1; ln h1 h2; chmod 640 long; mkfifo fifo
touch -d 2020-01-01 plain/a long
"""
WORK = """
echo more >> plain/a; sed -i s/two/zwei/ 'with space/deep/b'; rm gone; mkdir -p new/er; echo n > 'new/er/a b'
printf y >> "$(printf 'line\\nbreak')"; chmod 600 long; ln -sf long link; rm h2; truncate -s 10 long; mkfifo new/fifo
echo x > new/hard; ln new/hard new/hard2; touch -d 2021-01-01 'new/er/a b' plain
head -c 100000 /dev/zero > zeros; chmod 4755 zeros
/usr/bin/python3 -c 'import os; os.setxattr("plain/a", "user.key", b"value")'
mv 'with space' moved; rm -r moved/deep && mkdir moved/deep; echo said; exit 3
"""


@pytest.fixture(autouse=True)
def _only_their_own_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the rest of /tmp out of the views: their layers depend on what others have put and mounted there."""
    monkeypatch.setattr(overlay_mounts, "ALWAYS_ROOTS", ())


class Bench:
    """A workspace in a directory that all users reach, and previews of commands in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.workspace = directory / "work\nspace of mine"
        self.workspace.mkdir()
        self.store = str(directory / "store")
        self.hide: tuple[str, ...] = ()
        self.more: dict[str, Any] = {}

    def files(self, text: str) -> None:
        subprocess.run(["/bin/bash", "-c", text], cwd=self.workspace, check=True)

    def preview(self, text: str, way: str, *, timeout: float | None = 60.0) -> dict[str, Any]:
        """Run a command to its end, and return the report. Raises `NoPreview`."""
        options: dict[str, Any] = {
            "roots": [str(self.workspace)],
            "hide": self.hide,
            "network": False,
            "max_bytes": 1 << 30,
            "timeout": timeout,
            "workspace": str(self.workspace),
            "inside": [str(self.workspace)],
            "readable": [],
            "ways": [way],
        } | self.more
        out = os.open(self.directory / "out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        files = [(os.POSIX_SPAWN_DUP2, out, stream) for stream in (1, 2)]
        environment = {"PATH": "/usr/bin:/bin", "WORKSPACE": str(self.workspace)}
        command = PreviewedCommand("/bin/bash", ["bash", "-c", text], environment, files)
        try:
            pid = start(PreviewStart(self.store, options, str(self.workspace), None, command), Sandboxes())
        finally:
            os.close(out)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        report: dict[str, Any] = json.loads(Path(self.store, "report.json").read_text())
        assert code == report["code"] or report["code"] is None
        return report

    @property
    def output(self) -> str:
        return (self.directory / "out").read_text()

    def changes(self) -> Plan:
        return read_copy(self.store) if is_copy(self.store) else read_changes(self.store)

    def paths(self) -> dict[str, str]:
        return {os.path.relpath(change.path, self.workspace): change.op for change in self.changes().changes}


@contextmanager
def as_user_nobody() -> Iterator[Any]:
    """Run the body in a child that is an ordinary user, with a Python that this user can read."""
    with as_nobody() as status:
        if status.child and Path(SYSTEM_PYTHON).exists():
            sys.executable = SYSTEM_PYTHON
        yield status


def as_user(user: str, work: Callable[[Bench], None]) -> None:
    """Do something as root or as an ordinary user, in a directory of its own."""
    with public_directory() as directory:
        directory.chmod(0o777)
        if user == "root" and os.getuid() == 0:
            work(Bench(directory))
            return
        if os.getuid() != 0:
            if user == "root":
                pytest.skip("only root can be root")
            work(Bench(directory))
            return
        with as_user_nobody() as status:
            if status.child:
                work(Bench(directory))
        assert status.code == 0


@pytest.fixture
def bwrap() -> None:
    """Skip where there is no bubblewrap that can do it, also for the user that the tests become."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    with public_directory() as directory:
        directory.chmod(0o777)
        problem = directory / "problem"
        with as_user_nobody() as status:
            if status.child:
                try:
                    Bench(directory).preview("true", BUBBLEWRAP)
                except NoPreview as error:
                    problem.write_text(str(error))
        if problem.exists():
            pytest.skip(f"bubblewrap cannot preview here: {problem.read_text()}")


def applied_like_a_real_run(bench: Bench, way: str) -> None:
    """Preview, apply and undo, and compare each with what a real run makes of a copy."""
    bench.files(FILES)
    real = bench.directory / "real"
    subprocess.run(["/bin/cp", "-a", str(bench.workspace), str(real)], check=True)
    os.utime(real, ns=(bench.workspace.stat().st_atime_ns, bench.workspace.stat().st_mtime_ns))
    before = described(bench.workspace, inodes=True)
    report = bench.preview(WORK, way)
    assert described(bench.workspace, inodes=True) == before
    assert (report["way"], report["code"], report["over"]) == (way, 3, "") and bench.output == "said\n"
    assert not report.get("refused")
    plan = bench.changes()
    assert not plan.meanwhile and described(bench.workspace, inodes=True) == before
    transition.apply(bench.store)
    subprocess.run(["/bin/bash", "-c", WORK], cwd=real, check=False, stdout=subprocess.DEVNULL)
    timed = {".", "new", "new/er", "moved", "moved/deep", "link"}
    assert _without_times(described(bench.workspace), timed) == _without_times(described(real), timed)
    transition.undo(bench.store)
    assert described(bench.workspace, inodes=True) == before


WRITTEN_NOW = {
    "with space/deep/b",
    "line\nbreak",
    "zeros",
    "long",
    "plain/a",
    "h1",
    "new/hard",
    "new/hard2",
    "new/fifo",
}


def _without_times(found: dict[str, tuple[object, ...]], timed: set[str]) -> dict[str, tuple[object, ...]]:
    """Leave out the times of what the command has just written: two runs differ in them."""
    return {name: (*each[:3], None, *each[4:]) if name in timed | WRITTEN_NOW else each for name, each in found.items()}


@needs_overlays
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_changes_on_overlays_become_what_a_real_run_makes(user: str) -> None:
    as_user(user, lambda bench: applied_like_a_real_run(bench, OVERLAY))


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_changes_in_a_copy_become_what_a_real_run_makes(user: str) -> None:
    as_user(user, lambda bench: applied_like_a_real_run(bench, COPY))


def test_changes_by_bubblewrap_become_what_a_real_run_makes(bwrap: None) -> None:
    as_user("nobody", lambda bench: applied_like_a_real_run(bench, BUBBLEWRAP))


@needs_overlays
def test_directories_for_temporary_files_are_in_every_view(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(bench: Bench) -> None:
        temporary = bench.directory / "temporary"
        temporary.mkdir()
        monkeypatch.setattr(overlay_mounts, "ALWAYS_ROOTS", (str(temporary),))
        bench.preview(f"echo x > {temporary}/x && echo y > a", OVERLAY)
        assert bench.paths() == {"../temporary/x": "add", "a": "add"}
        assert not any(temporary.iterdir())

    as_user("nobody", work)


def closed_to_others(bench: Bench, way: str) -> None:
    """Try to reach outside, and look if anything there has changed."""
    outside = bench.directory / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    secret = bench.directory / "secret"
    secret.write_text("hidden")
    bench.hide = (str(secret),)
    before = described(outside)
    text = f"""
    (setsid sleep 60 >/dev/null 2>&1 &); exec 2>/dev/null
        echo y > {outside}/file; rm {outside}/file; chmod 777 {outside}/file; touch {outside}/new
    echo y > ../outside/file; kill -9 {os.getpid()}; cat {secret}; cat {bench.store}/*
    exec 3<>/dev/tcp/198.51.100.1/80
    """
    report = bench.preview(text, way)
    assert described(outside) == before
    assert "hidden" not in bench.output
    assert [line for line in report["left"] if "sleep 60" in line] or report["over"] == "network"


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("way", [COPY, READ_ONLY])
def test_nothing_outside_changes_in_a_sandbox(user: str, way: str) -> None:
    as_user(user, lambda bench: closed_to_others(bench, way))


def test_nothing_that_a_command_leaves_in_a_copy_runs_on() -> None:
    def work(bench: Bench) -> None:
        # It opens its file at once: afterwards nobody answers for it any more.
        report = bench.preview("exec 3> file; (sleep 30; echo late >&3) & echo soon > file", COPY)
        assert report["left"]
        assert Path(bench.store, COPY, "file").read_text() == "soon\n"

    as_user("nobody", work)


def test_nothing_outside_changes_by_bubblewrap(bwrap: None) -> None:
    as_user("nobody", lambda bench: closed_to_others(bench, BUBBLEWRAP))


DEVICES = {
    "echo x > /dev/sdx": "/dev/sdx",
    "dd if=/etc/passwd of=/dev/sdx": "/dev/sdx",
    "mkdir -p /dev/a/b && cp /etc/passwd /dev/a/b/sdx": "/dev/a/b/sdx",
    "mkdir /dev/a; echo x > /dev/a/sdx; chmod 000 /dev/a": "/dev/a",
    "echo x > /dev/sdx; rm /dev/sdx": "/dev",
    "chmod 000 /dev": "/dev",
    "echo x | tee /dev/null /dev/full /dev/shm/x /dev/stdout; : < /dev/zero; echo > a": "",
}
"""What a command tries, and a path that its report names."""


def tried_devices(bench: Bench, way: str) -> None:
    """Write to devices that a view does not have."""
    for number, (text, path) in enumerate(DEVICES.items()):
        bench.store = str(bench.directory / f"store{number}")
        report = bench.preview(text, way)
        assert path in report["devices"] if path else not report["devices"], text


@needs_overlays
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_devices_that_a_command_tries_to_write_to_are_named(user: str) -> None:
    as_user(user, lambda bench: tried_devices(bench, OVERLAY))


def test_devices_that_a_command_tries_to_write_to_are_named_by_bubblewrap(bwrap: None) -> None:
    as_user("nobody", lambda bench: tried_devices(bench, BUBBLEWRAP))


@needs_overlays
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_devices_of_a_view_take_nothing_and_are_few(user: str) -> None:
    def work(bench: Bench) -> None:
        report = bench.preview("for i in $(seq 1000); do echo x > /dev/x$i; done 2>/dev/null; cat /dev/x*", OVERLAY)
        assert bench.output == "" and 0 < len(report["devices"]) < 200

    as_user(user, work)


@needs_overlays
@pytest.mark.skipif(not Path("/dev/net").is_dir(), reason="there is no directory of devices")
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_devices_in_directories_of_this_machine_are_named(user: str) -> None:
    def work(bench: Bench) -> None:
        assert bench.preview("echo x > /dev/net/x", OVERLAY)["devices"] == ["/dev/net/x"]

    as_user(user, work)


def test_paths_into_the_workspace_are_refused_and_named_in_a_copy() -> None:
    def work(bench: Bench) -> None:
        bench.files("echo one > a; mkdir b")
        top = bench.workspace
        text = f"""
        exec 2>/dev/null; cat '{top}/a'; echo x > '{top}/new'; cd '{top}/b'; chmod 600 '{top}/a'
        printf '#!{top}/tool\\n' > s; chmod +x s; ./s; echo y > /usr/y; cat "$WORKSPACE/a"
        """
        before = described(bench.workspace)
        report = bench.preview(text, COPY)
        refused = {(what, path.removeprefix(f"{top}/")) for what, path in report["refused"]}
        assert refused >= {("reach", "a"), ("write", "new"), ("reach", "b"), ("change", "a"), ("write", "/usr/y")}
        assert bench.output == "one\n"  # by a variable, which names the copy
        assert described(bench.workspace) == before

    as_user("root" if os.getuid() == 0 else "nobody", work)


def test_a_file_with_the_path_of_the_copy_in_it_is_found() -> None:
    def work(bench: Bench) -> None:
        bench.preview('pwd > here; mkdir d; ln -s "$PWD/d" d/link; echo other > there', COPY)
        assert bench.paths() == {"here": "add", "d": "add", "there": "add"}
        assert sorted(os.path.relpath(path, bench.workspace) for path in leaks_of(bench.store)) == ["d/link", "here"]

    as_user("nobody", work)


def test_a_read_only_run_names_what_it_would_write_and_changes_nothing() -> None:
    def work(bench: Bench) -> None:
        bench.files("echo one > a; mkdir b")
        before = described(bench.workspace)
        report = bench.preview("cat a; echo x > new; rm -f a; chmod 700 b; mkdir c; exit 0", READ_ONLY)
        assert described(bench.workspace) == before
        assert bench.output.startswith("one\n")
        refused = {(what, os.path.relpath(path, bench.workspace)) for what, path in report["refused"]}
        assert refused == {("write", "new"), ("write", "a"), ("change", "b"), ("write", "c")}
        assert not is_copy(bench.store) and not Path(bench.store, "plan.json").exists()

    as_user("nobody", work)


LIMITS = [
    ("MOST_COPIED", 3, "seq 9 | xargs touch", "more than 3 files"),
    ("MOST_COPIED_BYTES", 5, "echo 123456789 > a", "GiB to copy"),
    ("LONGEST_COPY_S", -1.0, "touch a", "takes more than"),
]


@pytest.mark.parametrize(("name", "limit", "files", "words"), LIMITS, ids=[name for name, *_ in LIMITS])
def test_a_workspace_beyond_a_limit_is_not_copied(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: float, files: str, words: str
) -> None:
    monkeypatch.setattr(confined, name, limit)

    def work(bench: Bench) -> None:
        bench.files(files)
        with pytest.raises(NoPreview, match=words):
            bench.preview("true", COPY)
        assert not os.path.exists(bench.store)
        bench.more = {"ways": [COPY, READ_ONLY]}
        report = bench.preview("true", COPY)
        assert report["way"] == READ_ONLY
        assert report["instead"][0][0] == COPY and words in report["instead"][0][1]

    as_user("nobody", work)


@pytest.mark.slow
@pytest.mark.parametrize("way", [OVERLAY, BUBBLEWRAP, COPY, READ_ONLY])
def test_a_preview_is_ended_at_its_time_limit(way: str, request: pytest.FixtureRequest) -> None:
    if way in (OVERLAY, BUBBLEWRAP):
        request.getfixturevalue("overlays" if way == OVERLAY else "bwrap")

    def work(bench: Bench) -> None:
        report = bench.preview("trap '' TERM; sleep 600 & sleep 600", way, timeout=0.5)
        assert (report["over"], report["left"]) == ("time", [])

    as_user("nobody", work)


@pytest.mark.slow
@pytest.mark.parametrize("way", [OVERLAY, COPY])
def test_a_preview_is_ended_when_it_takes_too_much_space(way: str, request: pytest.FixtureRequest) -> None:
    if way == OVERLAY:
        request.getfixturevalue("overlays")

    def work(bench: Bench) -> None:
        bench.more = {"max_bytes": 100_000}
        report = bench.preview("head -c 500000 /dev/urandom > a; sleep 600", way)
        assert report["over"] == "space"

    as_user("nobody", work)


def test_a_file_that_cannot_be_read_keeps_a_workspace_from_being_copied() -> None:
    def work(bench: Bench) -> None:
        bench.files("echo x > closed; chmod 000 closed")
        with pytest.raises(NoPreview, match="closed cannot be read"):
            bench.preview("true", COPY)
        assert (bench.workspace / "closed").stat().st_mode & 0o777 == 0

    as_user("nobody", work)


def test_what_somebody_else_changes_while_a_copy_is_used_is_named() -> None:
    def work(bench: Bench) -> None:
        bench.files("echo one > a; echo one > b")
        bench.preview("echo two > a; rm b", COPY)
        (bench.workspace / "a").write_text("mine")
        assert bench.changes().meanwhile == (str(bench.workspace / "a"),)
        with pytest.raises(transition.Conflict):
            transition.apply(bench.store)
        assert (bench.workspace / "a").read_text() == "mine" and (bench.workspace / "b").exists()

    as_user("nobody", work)


def with_mounts(work: Callable[[Bench], None]) -> None:
    """Do something as root, in a child that can mount file systems, which nobody else sees."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    with public_directory() as directory:
        bench = Bench(directory)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                code = NO_MOUNTS
                syscalls.call("unshare", NEWNS)
                code = 1
                syscalls.call("mount", None, b"/", None, PRIVATE_ALL, None)
                (bench.workspace / "disk").mkdir()
                mount_memory(bench.workspace / "disk")
                work(bench)
                code = 0
            except BaseException:  # noqa: BLE001 - the child must never return into pytest
                traceback.print_exc()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == NO_MOUNTS:
            pytest.skip("the system lets root mount nothing")
        assert code == 0


def on_overlayfs(bench: Bench, *, store_too: bool) -> None:
    """Move a bench to a file system like that of a container."""
    lower, upper, work, top = (bench.directory / name for name in ("lower", "upper", "work", "container"))
    for each in (lower, upper, work, top):
        each.mkdir()
    (lower / "garden").mkdir()
    bench.workspace = lower / "garden"
    bench.files(FILES)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    syscalls.call("mount", b"overlay", os.fsencode(top), b"overlay", 0, options.encode())
    bench.workspace = top / "garden"
    bench.files("echo from above > above; rm gone; echo gone > gone")
    if store_too:
        bench.store = str(top / "store")


@needs_overlays
@pytest.mark.parametrize("store_too", [False, True], ids=["workspace", "everything"])
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_files_on_overlayfs_as_in_containers_are_previewed_applied_and_taken_back(user: str, store_too: bool) -> None:
    """Only root with all of its files there needs a copy: overlayfs takes no upper directory on overlayfs."""
    way = COPY if user == "root" and store_too else OVERLAY

    def changed(bench: Bench) -> None:
        before = described(bench.workspace)
        bench.more = {"ways": [OVERLAY, COPY]}
        text = "echo more >> above; rm gone; mkdir new; echo n > new/file; chmod 600 long; rm -r plain; mkdir plain"
        report = bench.preview(text, OVERLAY)
        assert report["way"] == way and described(bench.workspace) == before, report["instead"]
        changes = {"above": "write", "gone": "delete", "new": "add", "long": "attributes", "plain/a": "delete"}
        assert bench.paths() == changes
        transition.apply(bench.store)
        assert (bench.workspace / "above").read_text() == "from above\nmore\n"
        assert not (bench.workspace / "gone").exists() and (bench.workspace / "new" / "file").read_text() == "n\n"
        transition.undo(bench.store)
        assert described(bench.workspace) == before

    def work(bench: Bench) -> None:
        on_overlayfs(bench, store_too=store_too)
        if user == "root":
            changed(bench)
            return
        for each in (bench.directory, bench.workspace.parent, bench.workspace, *bench.workspace.rglob("*")):
            os.chown(each, NOBODY, NOBODY, follow_symlinks=False)
        with as_user_nobody() as status:
            if status.child:
                changed(bench)
        assert status.code == 0

    with_mounts(work)


def mount_memory(place: Path) -> None:
    syscalls.call("mount", b"tmpfs", os.fsencode(place), b"tmpfs", NOSUID, None)


@needs_overlays
def test_a_name_of_a_namespace_below_the_workspace_prevents_no_preview() -> None:
    """Container engines mount such names on files, which nobody can read."""

    def work(bench: Bench) -> None:
        bench.files("echo one > a; touch name")
        syscalls.call("mount", b"/proc/self/ns/uts", os.fsencode(bench.workspace / "name"), None, BIND, None)
        bench.preview("echo two > a", OVERLAY)
        assert set(bench.paths()) == {"a"}

    with_mounts(work)


@needs_overlays
def test_what_others_remove_beside_a_mount_while_the_view_is_made_prevents_no_preview(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As happens in /tmp all the time."""
    listed, prepare = overlay_mounts.mount_points, preview_process.prepare

    def work(bench: Bench) -> None:
        def prepare_late(*arguments: Any, **named: Any) -> None:
            bench.files("rm -r gone large emptied")
            prepare(*arguments, **named)

        bench.files(f"echo one > a; mkdir gone emptied; echo > gone/b; seq {overlay_mounts.SMALL_FILE} > large")
        monkeypatch.setattr(overlay_mounts, "mount_points", lambda: {*listed(), f"{bench.workspace}/emptied/unmounted"})
        monkeypatch.setattr(preview_process, "prepare", prepare_late)
        report = bench.preview("cat gone/* large; echo x > gone/new; echo x > large; echo two > a", OVERLAY)
        assert report["code"] == 0 and "gone/*': No such file" in bench.output and "large: Read-only" in bench.output
        assert set(bench.paths()) == {"a"}
        assert f"{bench.workspace}/gone" in bench.changes().meanwhile, "the command has written where nothing is"

    with_mounts(work)


@needs_overlays
def test_a_directory_that_is_gone_with_its_mount_while_layers_are_planned_prevents_no_preview(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed, is_planned = overlay_mounts.mount_points, os.makedirs

    def work(bench: Bench) -> None:
        gone = bench.workspace / "gone"

        def make(path: str, mode: int = 0o777) -> None:
            # The workspace is listed when the upper directory of what is in it is made.
            if Path(path).name == "1u":
                gone.rmdir()
            is_planned(path, mode)

        bench.files("mkdir gone; echo one > a")
        monkeypatch.setattr(overlay_mounts, "mount_points", lambda: {*listed(), f"{gone}/unmounted"})
        monkeypatch.setattr(os, "makedirs", make)
        assert bench.preview("ls gone && echo two > a", OVERLAY)["code"] == 0
        assert set(bench.paths()) == {"a"}

    with_mounts(work)


@needs_overlays
def test_a_mount_beside_a_workspace_in_var_keeps_no_ordinary_user_from_previews() -> None:
    """An ordinary user's overlay cannot cover /var then, so it is made anew."""

    def work(bench: Bench) -> None:
        mount_memory(Path("/var/opt"))
        with public_directory("/var/tmp") as directory:
            directory.chmod(0o777)
            with as_user_nobody() as status:
                if status.child:
                    there = Bench(directory)
                    report = there.preview("ls /var; ls -A /var/opt; echo x > new", OVERLAY)
                    assert (report["code"], there.output.split()) == (0, sorted(os.listdir("/var")))
                    assert there.paths() == {"new": "add"}
            assert status.code == 0

    with_mounts(work)


@needs_overlays
def test_very_many_files_beside_the_store_keep_no_ordinary_user_from_previews() -> None:
    """The directory is made anew, because of the mount below it, and not all of its entries are."""

    def work(bench: Bench) -> None:
        for number in range(MOST_SHOWN):
            (bench.directory / f"{number:04}").touch()
        for each in (bench.directory, bench.workspace):
            os.chown(each, NOBODY, NOBODY)
        with as_user_nobody() as status:
            if status.child:
                report = bench.preview("find .. -mindepth 1 -maxdepth 1 -printf x; echo x > new", OVERLAY)
                assert (report["code"], bench.output) == (0, "x" * MOST_SHOWN)
                assert bench.paths() == {"new": "add"}
        assert status.code == 0

    with_mounts(work)


@pytest.mark.parametrize("way", [OVERLAY, COPY])
def test_a_file_system_below_the_workspace_is_previewed_too(way: str, request: pytest.FixtureRequest) -> None:
    if way == OVERLAY:
        request.getfixturevalue("overlays")

    def work(bench: Bench) -> None:
        bench.files("echo one > a; echo one > disk/b; mkdir disk/d")
        bench.preview("echo two > a; echo two >> disk/b; mkdir disk/new; rmdir disk/d", way)
        assert set(bench.paths()) == {"a", "disk/b", "disk/new", "disk/d"}
        before = described(bench.workspace)
        transition.apply(bench.store)
        assert (bench.workspace / "disk" / "b").read_text() == "one\ntwo\n"
        transition.undo(bench.store)
        assert described(bench.workspace) == before

    with_mounts(work)


@needs_overlays
def test_a_mount_beside_very_many_directories_leads_to_the_next_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay_mounts, "MOST_LAYERS", 3)

    def work(bench: Bench) -> None:
        bench.files("mkdir 1 2 3; echo one > 1/a")
        bench.more = {"ways": [OVERLAY, COPY]}
        report = bench.preview("echo two > 1/a", OVERLAY)
        assert report["way"] == COPY and bench.paths() == {"1/a": "write"}
        ((way, reason),) = report["instead"]
        assert way == OVERLAY and f"{bench.workspace}/disk is mounted below" in reason and "unmount it" in reason

    with_mounts(work)


@pytest.mark.parametrize(
    ("says", "words"),
    [("bubblewrap 0.8.0", "is bubblewrap 0.8.0, and overlays need 0.11"), ("", "of an unknown version")],
)
def test_an_old_bubblewrap_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho {says}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoPreview, match=words):
        preview_ways.bubblewrap()


REMOVES_AND_FAILS = """#!/bin/sh
[ "$1" = --version ] && echo bubblewrap 0.11.0 && exit
echo "$@" | grep -c -- "--overlay-src $OTHER " >> "$TRIES"
rmdir "$OTHER" 2>/dev/null
echo it fails >&2
exit 1
"""


def test_bubblewrap_is_tried_again_without_what_others_have_removed() -> None:
    def work(bench: Bench) -> None:
        other, tries = bench.directory / "other", bench.directory / "tries"
        other.mkdir()
        program = bench.directory / "bwrap"
        program.write_text(REMOVES_AND_FAILS)
        program.chmod(0o755)
        os.environ |= {"PATH": f"{bench.directory}:{os.environ['PATH']}", "OTHER": str(other), "TRIES": str(tries)}
        bench.more = {"roots": [str(bench.workspace), str(other)]}
        with pytest.raises(NoPreview, match="it fails"):
            bench.preview("true", BUBBLEWRAP)
        # Nothing is missing the second time, so that the failure has another reason.
        assert tries.read_text().split() == ["1", "0"]

    as_user("nobody", work)


def test_bubblewrap_is_found_to_work_where_it_works(bwrap: None) -> None:
    def work(bench: Bench) -> None:
        words = [sys.executable, "-m", preview_ways.__name__, bench.store, str(bench.workspace), BUBBLEWRAP, COPY]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert json.loads(told)["ways"] == [BUBBLEWRAP, COPY], told

    as_user("nobody", work)


TELLS_WHAT_IT_WOULD_RUN = """#!/bin/sh
[ "$1" = --version ] && echo bubblewrap 0.11.0 && exit
while [ "$1" != -c ]; do shift; done
echo "$2" >&2
exit 1
"""


def test_bubblewrap_is_tried_with_the_program_of_real_previews() -> None:
    def work(bench: Bench) -> None:
        program = bench.directory / "bwrap"
        program.write_text(TELLS_WHAT_IT_WOULD_RUN)
        program.chmod(0o755)
        os.environ["PATH"] = f"{bench.directory}:{os.environ['PATH']}"
        with pytest.raises(NoPreview) as real:
            bench.preview("true", BUBBLEWRAP)
        words = [sys.executable, "-m", preview_ways.__name__, bench.store, str(bench.workspace), BUBBLEWRAP]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert json.loads(told)["refused"] == [[BUBBLEWRAP, str(real.value)]]

    as_user("nobody", work)


@pytest.mark.parametrize("store", ["/var/lib/me/store", "/home/me/store"])
def test_no_layer_of_bubblewrap_lies_in_another_one(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    monkeypatch.setattr(overlay_mounts, "mount_points", set)
    arguments = list(overlay_mounts.bwrap_arguments(store, [], [], None, network=False))
    shown = {path for option, path in itertools.pairwise(arguments) if option == "--ro-overlay"}
    assert "/usr" in shown and not any(store.startswith(f"{path}/") for path in shown)


def test_a_bubblewrap_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoPreview, match="not installed"):
        preview_ways.bubblewrap()


ERASES_ITS_WORDS = "$| = 1; $0 = q(); print 1; sleep 600"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_that_has_erased_its_words_still_counts_as_left() -> None:
    with subprocess.Popen(["perl", "-e", ERASES_ITS_WORDS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.read(1) == b"1"
        assert command_line(process.pid).startswith("[")
        process.kill()
    assert command_line(process.pid) == ""
