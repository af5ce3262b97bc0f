"""A program in the cage reads what it was given, and can neither change, start nor reach anything."""

import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.outside import needs_sandbox
from whisper_tui.system.caged_program import Looked, look
from whisper_tui.system.processes import INSIDE, children_of, mark_in_limits

PERL = "/usr/bin/perl"
pytestmark = [needs_sandbox, pytest.mark.skipif(shutil.which(PERL) is None, reason="there is no Perl")]


def caged(*argv: str, workspace: Path, timeout_s: float = 30, most_bytes: int = 100_000) -> Looked:
    read = [os.path.realpath(workspace)]
    return look(argv, {"A": "a"}, directory=read[0], read=read, timeout_s=timeout_s, most_bytes=most_bytes)


def perl(program: str, workspace: Path, **limits: float) -> str:
    """What a program in Perl says at its end: each part of it says whether it succeeded."""
    said = caged(PERL, "-e", program, workspace=workspace, **limits)
    assert said.output is not None
    return said.output.decode()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    (directory / "given").write_text("given")
    (tmp_path / "other").write_text("SECRET")
    return directory


def test_it_reads_what_it_was_given_and_its_directory_is_that_which_was_named(workspace: Path) -> None:
    assert caged("/bin/cat", "given", workspace=workspace) == Looked(b"given")
    assert os.getcwd() != str(workspace)


@pytest.mark.parametrize("path", ["../other", "/etc/passwd", "/proc/self/environ", "link"])
def test_it_reads_nothing_else(path: str, workspace: Path) -> None:
    (workspace / "link").symlink_to("../other")
    assert Path("/etc/passwd").exists()
    assert caged("/bin/cat", path, workspace=workspace) == Looked(None)


def test_it_changes_nothing(workspace: Path) -> None:
    tried = """open(F, ">", "made") or print "open "; open(F, ">>", "given") or print "append ";
        unlink("given") or print "unlink "; rename("given", "g") or print "rename "; mkdir("d") or print "mkdir ";
        chmod(0777, "given") or print "chmod "; utime(1, 1, "given") or print "utime ";
        symlink("a", "b") or print "symlink "; truncate("given", 0) or print "truncate ";
        open(F, ">", "/dev/null") and print "null";"""
    before = (workspace / "given").stat()
    said = perl(tried, workspace)
    assert said == "open append unlink rename mkdir chmod utime symlink truncate null"
    assert (workspace / "given").stat() == before
    assert os.listdir(workspace) == ["given"]


STARTS = {
    "fork": "defined(fork()) or print 'refused'",
    "vfork": "syscall(58) == -1 and print 'refused'",
    "clone": "syscall(CLONE, 17, 0, 0, 0, 0) == -1 and print 'refused'",
    "clone as posix_spawn does it": "syscall(CLONE, 0x4100 | 17, 0, 0, 0, 0) == -1 and print 'refused'",
    "clone3": "my $a = pack('Q11', (0) x 4, 17, (0) x 6); syscall(435, $a, 88) == -1 and print 'refused'",
    "a shell": "system('touch made; true') == -1 and print 'refused'",
    "a pipe": "open(F, '-|', 'touch', 'made') or print 'refused'",
}


@pytest.mark.parametrize("way", STARTS)
def test_it_starts_nothing(way: str, workspace: Path) -> None:
    x86 = os.uname().machine == "x86_64"
    if way == "vfork" and not x86:
        pytest.skip("this processor has no such call")
    assert perl(STARTS[way].replace("CLONE", "56" if x86 else "220"), workspace) == "refused"
    assert not (workspace / "made").exists()


def test_it_may_have_threads(workspace: Path) -> None:
    program = "use Config; $Config{useithreads} or do { print 2; exit }; eval 'use threads; "
    program += "print threads->create(sub { 1 + 1 })->join()'"
    assert perl(program, workspace) == "2"


@pytest.mark.parametrize("kind", ["AF_UNIX, SOCK_STREAM", "AF_UNIX, SOCK_DGRAM", "AF_INET, SOCK_STREAM"])
def test_it_opens_no_socket(kind: str, workspace: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workspace / "s"))
        listener.listen()
        tried = f"use Socket; socket(S, {kind}, 0) or print 'socket '; "
        assert perl(tried, workspace) == "socket "
    assert perl("use Socket; socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or print 'pair'", workspace) == "pair"


def test_it_signals_nobody(workspace: Path) -> None:
    assert perl(f"kill('CONT', {os.getpid()}) or print 'refused'", workspace) == "refused"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only this processor has a second set of numbers")
def test_calls_by_the_numbers_of_another_abi_do_not_exist(workspace: Path) -> None:
    assert perl("syscall(0x40000000 | 39) == -1 and print $! + 0", workspace) == "38"


def wait_for_a_child(before: set[int]) -> int:
    """The pid of the child that this process has by now and did not have before."""
    deadline = time.monotonic() + 60
    while not (found := set(children_of(os.getpid())) - before):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found.pop()


@pytest.mark.slow
def test_what_hangs_is_ended_in_time_and_has_the_mark_and_no_rights(workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    before, said = set(children_of(os.getpid())), []
    hanging = threading.Thread(target=lambda: said.append(caged("/bin/cat", "fifo", workspace=workspace, timeout_s=6)))
    hanging.start()
    directory = Path(f"/proc/{wait_for_a_child(before)}")
    deadline = time.monotonic() + 60
    while mark_in_limits((directory / "limits").read_bytes()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    status = dict(line.split(":\t", 1) for line in (directory / "status").read_text().splitlines() if ":\t" in line)
    assert (status["NoNewPrivs"], status["Seccomp"], int(status["CapEff"], 16)) == ("1", "2", 0)
    assert f"{INSIDE}=".encode() in (directory / "environ").read_bytes()
    assert mark_in_limits((directory / "limits").read_bytes()) == "command"
    assert (directory / "cmdline").read_bytes() == b"/bin/cat\0fifo\0"
    hanging.join()
    assert said == [Looked(None, was_late=True)]
    assert not directory.exists()


def test_too_much_output_is_no_output(workspace: Path) -> None:
    assert caged(PERL, "-e", "print 'x' x 100", workspace=workspace, most_bytes=100) == Looked(b"x" * 100)
    assert caged(PERL, "-e", "$| = 1; print 'x' x 101; sleep 100", workspace=workspace, most_bytes=100) == Looked(None)


def test_a_program_that_is_not_there_is_an_error_and_leaves_nothing_behind(workspace: Path) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    # The first look opens the files of the system, which stay open for all others.
    caged("/bin/true", workspace=workspace)
    before = held()
    with pytest.raises(FileNotFoundError):
        caged("/bin/not-there", workspace=workspace)
    deadline = time.monotonic() + 30
    while held() > before:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_this_process_stays_free(workspace: Path) -> None:
    caged("/bin/true", workspace=workspace)
    (workspace / "made").write_text("x")
    assert os.waitstatus_to_exitcode(os.system("true")) == 0


def test_several_are_asked_at_once(workspace: Path) -> None:
    said: list[Looked] = []
    asking = [
        threading.Thread(target=lambda: said.append(caged("/bin/cat", "given", workspace=workspace))) for _ in range(20)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert said == [Looked(b"given")] * 20
