"""What the kernel holds of a sandboxed command, whatever its words say."""

import _thread
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.ending import Exited, FailedToStart
from whisper_tui.model.run import Limits
from whisper_tui.supervisor.keeper.limited_start import ProcessLimits, fork_limited
from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.sandbox import Profile, Sandboxes
from whisper_tui.supervisor.runs.executor import HasEnded, SandboxProfile
from whisper_tui.system import landlock_rules, syscalls
from whisper_tui.system.bpf import Filter, answered
from whisper_tui.system.confinement import FilteredThread, probe

pytestmark = pytest.mark.skipif(bool(probe().problem), reason=f"no sandbox here: {probe().problem}")

CLEAN = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LC_ALL": "C"}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(tmp_path)
    (made.workspace / "known.txt").write_text("known\n")
    await made.open()
    yield made
    await made.close()


class Box:
    """Runs lines of bash in a sandbox and says what came of them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ended: HasEnded
        self.out = self.err = b""

    async def run(self, text: str, **profile: object) -> "Box":
        own = {name: profile.pop(name) for name in ("tty", "limits") if name in profile}
        given = {"read": (str(self._engine.workspace),), **profile}
        sandbox = SandboxProfile(**given)  # type: ignore[arg-type]
        key = await self._engine.run(text, sandbox=sandbox, environment=CLEAN, **own)
        self.ended = await self._engine.seen(key, HasEnded)
        self.out, self.err = self._engine.out(key), self._engine.err(key)
        return self

    @property
    def tried(self) -> list[str]:
        """What it was kept from, as people are told."""
        return [attempt.words() for attempt in self.ended.blocked.attempts] if self.ended.blocked else []


@pytest.fixture
def box(engine: Engine) -> Box:
    return Box(engine)


async def test_a_directory_that_has_become_a_link_is_not_opened(box: Box, tmp_path: Path) -> None:
    closed, judged = tmp_path / "closed", tmp_path / "judged"
    closed.mkdir()
    (closed / "secret").write_text("secret\n")
    judged.symlink_to(closed)
    await box.run(f"cat {judged}/secret", read=(str(judged), f"{judged}/secret"))
    assert (box.ended.ending, box.out) == (Exited(code=1), b"")
    await box.run(f"cat {closed}/secret", read=(str(closed),))
    assert (box.ended.ending, box.out) == (Exited(code=0), b"secret\n")


async def test_a_sandboxed_command_reads_the_workspace_and_the_system(box: Box) -> None:
    await box.run("cat known.txt; head -c 5 /etc/passwd")
    assert box.ended.ending == Exited(code=0)
    assert box.out.startswith(b"known\n")
    assert len(box.out) == 11
    assert box.ended.blocked is None


async def test_a_sandboxed_command_writes_only_to_its_temporary_directory(box: Box, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "workspace" / "made"
    await box.run(
        f'echo a > "$TMPDIR/a" && cat "$TMPDIR/a"; : > {outside}; : > {inside}; rm known.txt; echo > /dev/null'
    )
    assert box.out == b"a\n"
    assert not outside.exists()
    assert not inside.exists()
    assert (tmp_path / "workspace" / "known.txt").read_text() == "known\n"
    assert {f"tried to write {path}" for path in (outside, inside, inside.with_name("known.txt"))} <= set(box.tried)


@pytest.mark.parametrize("change", ["replaced", "parent replaced", "unchanged"])
def test_a_system_file_that_was_replaced_can_be_read_as_before(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "etc" / "hosts"
    file.parent.mkdir()
    file.write_text("old")
    (tmp_path / "private").write_text("secret")
    roots = (*landlock_rules._ROOTS, str(file))
    monkeypatch.setattr(landlock_rules, "_ROOTS", roots)
    sandboxes = Sandboxes()
    if change == "replaced":
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").rename(file)
    elif change == "parent replaced":
        file.parent.rename(tmp_path / "was")
        file.parent.mkdir()
        file.write_text("new")
    reader = f"cat {file}; cat {tmp_path}/private; cat {tmp_path}/was/hosts"
    read, write = os.pipe()
    profile = Profile((), (), (), network=False, processes=False)
    actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
    started = sandboxes.start(
        profile, lambda: os.posix_spawn("/bin/sh", ["sh", "-c", reader], CLEAN, file_actions=actions)
    )
    os.close(write)
    os.waitpid(started.pid, 0)
    os.close(started.listener)
    assert os.read(read, 100) == (b"old" if change == "unchanged" else b"new")
    os.close(read)


async def test_its_temporary_directory_is_gone_afterwards(box: Box) -> None:
    await box.run('mkdir "$TMPDIR/d" && echo a > "$TMPDIR/d/a" && ln -s / "$TMPDIR/root" && echo "$TMPDIR"')
    assert box.ended.ending == Exited(code=0)
    assert not Path(os.fsdecode(box.out.strip())).exists()
    assert Path("/bin/sh").exists()


async def test_attributes_of_files_elsewhere_stay_as_they_are(box: Box, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere"
    file.write_text("x")
    file.chmod(0o600)
    before = file.stat()
    await box.run(f"chmod 777 {file}; touch -d 2001-01-01 {file}; chmod 777 known.txt; truncate -s 0 {file}")
    assert (file.stat().st_mode, file.stat().st_mtime_ns, file.stat().st_size) == (
        before.st_mode,
        before.st_mtime_ns,
        1,
    )
    assert f"tried to change the attributes of {file}" in box.tried


async def test_attributes_in_its_temporary_directory_can_be_changed(box: Box) -> None:
    await box.run('cd "$TMPDIR"; : > f; chmod 640 f; touch -d "2001-01-01 UTC" f; stat -c "%a %Y" f; chmod u+s f')
    assert box.out == b"640 978307200\n"
    assert b"Operation not permitted" in box.err


async def test_modes_that_programs_copy_as_access_control_lists_are_set(box: Box) -> None:
    files = 'cd "$TMPDIR"; : > a; chmod 640 a; cp -p a b; sed -i s/x/y/ a; install -m 604 a c; stat -c %a a b c; '
    await box.run(files + f"{PYTHON} -I -S -c '{_ACL}'", read=("/",), execute=("/",))
    assert box.out == f"640\n640\n604\n{errno.EOPNOTSUPP}\n{errno.EOPNOTSUPP}\n".encode()
    assert box.err == b""


_ACL = """
import os
for change in (lambda name: os.setxattr("a", name, b""), lambda name: os.removexattr("a", name)):
    try:
        change("system.posix_acl_access")
    except OSError as error:
        print(error.errno)
"""


async def test_private_files_of_a_home_cannot_be_read(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "home" / ".ssh" / "id_rsa"
    secret.parent.mkdir(parents=True)
    secret.write_text("SECRET")
    (tmp_path / "workspace" / "link").symlink_to(secret)
    await box.run(f"cat {secret} link ../home/.ssh/id_rsa; ls {secret.parent}")
    assert b"SECRET" not in box.out
    assert box.ended.blocked is not None
    assert any("Permission denied" in line for line in box.ended.blocked.messages)


async def test_environments_and_files_of_other_processes_stay_closed_even_to_viewers(box: Box) -> None:
    pid = os.getpid()
    await box.run(f"cat /proc/{pid}/environ; ls /proc/{pid}/fd; cat /proc/{pid}/mem; ps e -p {pid}", processes=True)
    assert b"PYTEST_CURRENT_TEST" not in box.out
    assert b"environ: Permission denied" in box.err


async def test_the_threads_of_its_keeper_stay_closed_even_to_viewers(box: Box) -> None:
    looks = (
        "for t in /proc/$PPID/task/*; do echo thread; head -c 1 $t/environ $t/mem; kill -0 ${t##*/} && echo sent; done"
    )
    await box.run(looks, processes=True)
    # The main one, the one that stays to start commands, and the one that answers as long as a command asks.
    assert box.out in {b"thread\n" * 2, b"thread\n" * 3}


def test_one_sandbox_follows_another_in_the_same_keeper() -> None:
    sandboxes = Sandboxes()
    for network in (False, True, False):
        profile = Profile((), (), (), network=network, processes=False)
        started = sandboxes.start(profile, lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], CLEAN))
        os.close(started.listener)
        assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 7
    with pytest.raises(FileNotFoundError):
        sandboxes.start(profile, lambda: os.posix_spawn("/nowhere/program", ["program"], CLEAN))
    sandboxes.close()
    started = sandboxes.start(profile, lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], CLEAN))
    os.close(started.listener)
    assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 7
    sandboxes.close()


def test_a_start_for_which_there_is_no_thread_fails_and_the_next_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = FilteredThread(Filter([answered(syscalls.RET_ALLOW)]))

    def none_left(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full, pytest.raises(RuntimeError, match="new thread"):
        full.setattr(_thread, "start_new_thread", none_left)
        thread.call(os.getpid)
    assert thread.call(os.getpid) == os.getpid()
    thread.close()


async def test_without_need_it_reads_nothing_about_other_processes(box: Box) -> None:
    await box.run(f"cat /proc/{os.getpid()}/cmdline")
    assert box.out == b""


async def test_a_sandboxed_command_executes_only_programs_of_the_system(box: Box, tmp_path: Path) -> None:
    program = tmp_path / "workspace" / "program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    await box.run('./program; cp /bin/true "$TMPDIR/t" && "$TMPDIR/t" || echo refused')
    assert box.out == b"refused\n"
    await box.run("./program", execute=(str(program.parent),))
    assert box.out == b"ran\n"


async def test_a_single_binary_is_opened_and_nothing_beside_it(box: Box, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("opened", "beside"):
        shutil.copy("/bin/echo", tools / name)
    text = f"{tools}/opened ran; {tools}/beside ran; cat {tools}/beside >&2; ls {tools}"
    await box.run(text, execute=(str(tools / "opened"),))
    assert box.out == b"ran\n"


async def test_a_program_from_elsewhere_is_not_started_and_reported(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    key = await engine.run("true", program=str(program), sandbox=SandboxProfile())
    ending = await engine.ended(key)
    assert isinstance(ending, FailedToStart)
    assert "the sandbox executes" in ending.message


async def test_a_sandboxed_command_reaches_no_network_and_no_local_socket(box: Box, tmp_path: Path) -> None:
    path = tmp_path / "workspace" / "socket"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        local.bind(str(path))
        local.listen()
        port = tcp.getsockname()[1]
        perl = f"use IO::Socket::UNIX; print IO::Socket::UNIX->new(Peer => q({path})) ? q(open) : q(closed)"
        await box.run(f"echo a > /dev/tcp/127.0.0.1/{port} || echo refused; perl -e '{perl}'")
        tcp.setblocking(False)
        with pytest.raises(BlockingIOError):
            tcp.accept()
    assert box.out.startswith(b"refused\n")
    assert b"open" not in box.out
    assert box.tried == ["tried to use the network"]


DATAGRAMS = """
use Socket;
for my $type (SOCK_DGRAM, SOCK_RAW, SOCK_DGRAM | 0x80800, SOCK_STREAM, SOCK_SEQPACKET) {
    next unless socketpair(my $one, my $two, AF_UNIX, $type, 0);
    print "$type ";
    send($one, "x", 0, pack_sockaddr_un($ARGV[0]));
    close $two;
    connect($one, pack("S", AF_UNSPEC)), connect($one, pack_sockaddr_un($ARGV[0])) and send($one, "x", 0);
}
"""


@pytest.mark.parametrize("network", [False, True])
async def test_a_sandboxed_command_sends_no_datagram_to_a_local_socket(
    box: Box, tmp_path: Path, *, network: bool
) -> None:
    (tmp_path / "workspace" / "datagrams.pl").write_text(DATAGRAMS)
    path = tmp_path / "workspace" / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local:
        local.bind(str(path))
        path.chmod(0o777)
        await box.run(f"perl datagrams.pl {path}", network=network)
        local.setblocking(False)
        with pytest.raises(BlockingIOError):
            local.recv(1)
    assert box.out == b"1 5 ", "pairs that stay connected can be made"


async def test_a_sandboxed_command_changes_its_own_priority_and_no_other(box: Box, tmp_path: Path) -> None:
    # Those for a whole user fail in another way where they are permitted by mistake: without rights nobody gets a
    # higher priority, and there is no class 7.
    numbers = {name: syscalls.NUMBERS[name] for name in ("setpriority", "ioprio_set")}
    before = os.getpriority(os.PRIO_PROCESS, 0)
    # An ordinary user can only become nicer, and the tests may be so already.
    lower, lowest = min(before + 1, 19), min(before + 2, 19)
    perl = "; ".join(
        f"$! = 0; syscall({numbers[name]}, {which}, {who}, {value}); print $! + 0, q( )"
        for name, which, who, value in (
            ("setpriority", 2, 0, -20),
            ("ioprio_set", 3, 0, 7 << 13),
            ("setpriority", 0, os.getpid(), 1),
            ("setpriority", 1, 0, lower),
            ("setpriority", 0, 0, lowest),
            ("ioprio_set", 1, 0, 3 << 13),
        )
    )
    await box.run(f"perl -e '{perl}'; nice", network=False)
    assert box.out.startswith(b"%d %d %d 0 0 0 " % ((errno.EPERM,) * 3))
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


FLAGS = """
import fcntl, os, struct, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for request in (0x40086602, 0x401C5820, 0x40087602, 0x40806685, 0xC0189436, 0x5412, 0x5423, 0xDEAD):
    try:
        fcntl.ioctl(file, request, bytearray(128))
    except OSError as error:
        print(error.errno)
    else:
        print("done")
flags = struct.unpack("=I", fcntl.ioctl(file, 0x80086601, bytes(4)))[0]
"""


async def test_a_sandboxed_command_changes_no_flags_of_files_that_it_can_only_read(box: Box, tmp_path: Path) -> None:
    """Only listed requests of ioctl(2) are allowed: FS_IOC_SETFLAGS works on descriptors for reading."""
    (tmp_path / "workspace" / "flags.py").write_text(FLAGS)
    await box.run("/usr/bin/python3 flags.py known.txt; chattr +A known.txt")
    assert box.out == f"{errno.EPERM}\n".encode() * 8
    assert box.ended.blocked is not None
    assert any("Operation not permitted" in line for line in box.ended.blocked.messages)
    await box.run("lsattr known.txt")
    assert b"A" not in box.out.split()[0]


@pytest.mark.parametrize(
    ("number", "answer"),
    [(467, errno.EPERM), (464, errno.EPERM), (468, errno.EPERM), (470, errno.ENOSYS), (999, errno.ENOSYS)],
)
async def test_calls_that_the_sandbox_does_not_know_are_refused(box: Box, number: int, answer: int) -> None:
    """They include open_tree_attr, getxattrat and file_getattr. Newer calls do not exist, so programs fall back."""
    await box.run(f"perl -e '$! = 0; syscall({number}, -100, my $path = qq(/), 0, 0, 0); print $! + 0'")
    assert box.out == str(answer).encode()


async def test_a_sandboxed_command_reaches_the_network_if_permitted(box: Box) -> None:
    with socket.socket() as tcp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        await box.run(f"echo hello > /dev/tcp/127.0.0.1/{tcp.getsockname()[1]}", network=True)
        connection, _ = tcp.accept()
        with connection:
            assert connection.recv(100) == b"hello\n"


async def test_a_sandboxed_command_cannot_signal_other_processes(box: Box) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        await box.run(f"kill -9 {sleeper.pid}; sleep 60 & kill $! && echo own")
        assert box.out == b"own\n"
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


async def test_a_sandboxed_command_gains_no_rights_and_no_namespaces(box: Box) -> None:
    await box.run("grep -E 'NoNewPrivs|CapEff' /proc/self/status; unshare -Ur true || echo refused", processes=True)
    assert b"NoNewPrivs:\t1" in box.out
    assert b"CapEff:\t0000000000000000" in box.out
    assert b"refused" in box.out


async def test_the_keeper_itself_stays_free(box: Box, engine: Engine, tmp_path: Path) -> None:
    await box.run("true")
    key = await engine.run(f"echo free > {tmp_path}/free")
    assert await engine.ended(key) == Exited(code=0)
    assert (tmp_path / "free").read_text() == "free\n"


async def test_a_sandboxed_command_can_open_its_own_terminal_and_no_other(box: Box) -> None:
    mine, theirs = os.openpty()
    try:
        other = os.ttyname(theirs)
        await box.run(f"tty; echo to-me > /dev/tty; head -c 1 < {other} || echo refused", tty=True)
    finally:
        os.close(mine)
        os.close(theirs)
    assert b"/dev/pts/" in box.out
    assert b"to-me" in box.out
    assert b"refused" in box.out


async def test_limits_hold_in_a_sandbox_too(box: Box, tmp_path: Path) -> None:
    await box.run(f"ulimit -t; : > {tmp_path}/x", limits=Limits(cpu_s=7))
    assert box.out == b"7\n"
    assert box.tried == [f"tried to write {tmp_path}/x"]


async def test_the_workspace_can_be_opened_for_writing(box: Box, tmp_path: Path) -> None:
    workspace = str(tmp_path / "workspace")
    text = f"mkdir d && echo a > d/a && mv d e && chmod 700 e && rm known.txt && ls; : > {tmp_path}/outside"
    await box.run(text, write=(workspace,), execute=(workspace,))
    assert box.out == b"e\n"
    assert not (tmp_path / "outside").exists()


async def test_attempts_without_end_are_counted(box: Box) -> None:
    await box.run("for i in $(seq 1 60); do : > /tmp/whisper-tui-test-$i; done 2> /dev/null")
    assert box.ended.blocked is not None
    assert len(box.ended.blocked.attempts) == 20
    assert box.ended.blocked.more == 40


NO_LANDLOCK = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = 444
code = b"".join(struct.pack("=HBBI", *row) for row in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)))
buffer = ctypes.create_string_buffer(code, len(code))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
program = Program(4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.syscall(int(sys.argv[1]), 1, 0, ctypes.byref(program)) == 0
"""
"""Makes the kernel answer as one without Landlock does, for this process and all that it starts."""


@pytest.mark.parametrize("when", ["before it knows the filter", "while it is asked about the exec"])
def test_a_command_whose_keeper_is_killed_before_it_starts_is_gone_as_well(tmp_path: Path, when: str) -> None:
    alive, held = os.pipe()
    host = os.fork()
    if not host:
        # All processes that this one starts hold the pipe until they become the command.
        os.close(alive)
        profile = Profile((str(tmp_path),), (str(tmp_path),), (str(tmp_path),), network=False, processes=False)
        into_sandbox = Sandboxes().restriction(profile, watched=True)

        def restrict() -> int:
            if when == "before it knows the filter":
                os.kill(os.getppid(), signal.SIGKILL)
            return into_sandbox()

        fork_limited(
            "/bin/true",
            ["true"],
            {},
            files=[],
            limits=ProcessLimits(None, None),
            group=RunCgroup(),
            restrict=restrict,
            answer=lambda _: os.kill(os.getpid(), signal.SIGKILL),
        )
        os._exit(1)
    os.close(held)
    assert os.waitstatus_to_exitcode(os.waitpid(host, 0)[1]) == -signal.SIGKILL
    assert select.select([alive], [], [], 30)[0] == [alive], "the process that was to become the command is left"
    assert os.read(alive, 1) == b""
    os.close(alive)


def test_a_missing_landlock_is_detected_and_reported() -> None:
    number = {"x86_64": "317", "aarch64": "277"}[os.uname().machine]
    text = NO_LANDLOCK + "from whisper_tui.system.confinement import probe\nprint(probe())"
    done = subprocess.run([sys.executable, "-c", text, number], check=True, capture_output=True, text=True, timeout=60)
    assert "version=0" in done.stdout, done.stderr
    assert "this kernel has no Landlock" in done.stdout
