"""A view shows the whole machine, and nothing of it that lives: no socket, no FIFO and no device answers in it."""

import os
import select
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.changes.trees import public_directory
from tests.outside import needs_overlays
from tests.supervisor.preview.test_preview_ways import (
    BUBBLEWRAP,
    COPY,
    OVERLAY,
    READ_ONLY,
    Bench,
    as_user,
    as_user_nobody,
    bwrap,
    mount_memory,
    with_mounts,
)
from whisper_tui.supervisor.preview import overlay_mounts

__all__ = ["bwrap"]

USERS = ("root", "nobody")
NULL = os.makedev(1, 3)


@pytest.fixture(autouse=True)
def only_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directories of the tests are outside of a view, unlike all others in /tmp."""
    monkeypatch.setattr(overlay_mounts, "ALWAYS_ROOTS", ())


class Services:
    """A FIFO and two sockets that live, as those of daemons do."""

    def __init__(self, directory: Path) -> None:
        self.fifo, self.stream, self.datagrams = (directory / name for name in ("fifo", "stream", "datagrams"))
        os.mkfifo(self.fifo)
        self._reading = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(self.stream))
        self._listening.listen()
        self._receiving = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._receiving.bind(str(self.datagrams))
        for path in (self.fifo, self.stream, self.datagrams):
            path.chmod(0o666)

    def reached(self) -> list[str]:
        """What has got something."""
        poll = select.poll()
        for each in (self._listening, self._receiving):
            poll.register(each, select.POLLIN)
        found = [f"{fd}" for fd, _ in poll.poll(0)]
        try:
            got = os.read(self._reading, 100)
        except BlockingIOError:
            got = b""
        return [*found, *([f"the FIFO: {got!r}"] if got else [])]

    def close(self) -> None:
        for each in (self._listening, self._receiving):
            each.close()
        os.close(self._reading)


@contextmanager
def services(directory: Path) -> Iterator[Services]:
    made = Services(directory)
    try:
        yield made
    finally:
        made.close()


TRIES = r"""
import concurrent.futures, ctypes, os, socket, sys
fifo, stream, datagrams = sys.argv[1:]
os.chdir(os.path.dirname(stream))

def tried(work):
    try:
        work()
    except OSError as error:
        print(type(error).__name__)
    else:
        print("reached")

def connected(kind, path):
    with socket.socket(socket.AF_UNIX, kind) as each:
        each.connect(path)

class Address(ctypes.Structure):
    _fields_ = [("family", ctypes.c_ushort), ("path", ctypes.c_char * 108)]

class Head(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("size", ctypes.c_uint), ("parts", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("length", ctypes.c_size_t),
                ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]

def sent_many(path):
    libc = ctypes.CDLL(None, use_errno=True)
    address, head = Address(1, os.fsencode(path)), Head()
    head.name, head.size = ctypes.addressof(address), ctypes.sizeof(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as each:
        if libc.sendmmsg(each.fileno(), ctypes.byref(head), 1, 0) < 0:
            raise OSError(ctypes.get_errno(), "sendmmsg")

def created(path):
    if ctypes.CDLL(None, use_errno=True).creat(os.fsencode(path), 0o600) < 0:
        raise OSError(ctypes.get_errno(), "creat")

def in_thread(work):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(work).result()

datagram = lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
tried(lambda: os.open(fifo, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
tried(lambda: open(fifo).read())
tried(lambda: created(fifo))
tried(lambda: in_thread(lambda: os.open("fifo", os.O_WRONLY)))
tried(lambda: os.write(os.open(fifo, os.O_RDWR), b"x"))
tried(lambda: os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
tried(lambda: os.open("fifo", os.O_RDWR))
tried(lambda: os.open(f"/proc/self/fd/{os.open(fifo, os.O_PATH)}", os.O_RDWR))
tried(lambda: connected(socket.SOCK_STREAM, stream))
tried(lambda: connected(socket.SOCK_STREAM, "stream"))
tried(lambda: connected(socket.SOCK_DGRAM, datagrams))
tried(lambda: datagram().sendto(b"x", datagrams))
tried(lambda: datagram().sendmsg([b"x"], [], 0, datagrams))
tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", datagrams))
tried(lambda: sent_many(datagrams))
"""


def nothing_is_reached(bench: Bench, directory: Path, way: str) -> None:
    """Try to reach what lives in a directory outside of the view, in every way."""
    bench.files(f"cat > tries.py <<'END'\n{TRIES}\nEND")
    with services(directory) as living:
        paths = " ".join(f"'{path}'" for path in (living.fifo, living.stream, living.datagrams))
        report = bench.preview(f"/usr/bin/python3 -I tries.py {paths}", way)
        assert living.reached() == []
    assert report["code"] == 0, bench.output
    assert "reached" not in bench.output and len(bench.output.split()) == 15, bench.output
    named = {path.rpartition("/")[2] for path, _ in report["sockets"]}
    assert named == {"fifo", "stream", "datagrams"}, report["sockets"]
    assert bench.paths() == {}


def outside(bench: Bench) -> Path:
    made = bench.directory / "outside"
    made.mkdir()
    return made


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_no_service_outside_of_a_view_is_reached_and_each_try_is_named(user: str) -> None:
    as_user(user, lambda bench: nothing_is_reached(bench, outside(bench), OVERLAY))


EVERYWHERE = """
for above in /.. $(cut -d' ' -f5 /proc/self/mountinfo); do
    test -e "$above$1/file" || continue
    echo "found below $above"
    echo x 1<> "$above$1/fifo"
done
"""
"""Looks for a directory of the machine below each mount, and in what the root of the view may cover."""


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_the_root_of_the_machine_is_nowhere_in_a_view(user: str) -> None:
    def work(bench: Bench) -> None:
        bench.files(f"cat > everywhere.sh <<'END'\n{EVERYWHERE}\nEND")
        place = outside(bench)
        (place / "file").touch()
        with services(place) as living:
            bench.preview(f"bash everywhere.sh '{place}'", OVERLAY)
            assert living.reached() == []
        found = [line for line in bench.output.splitlines() if line.startswith("found")]
        assert found == ["found below /..", "found below /"], bench.output

    as_user(user, work)


def test_no_service_outside_of_a_view_by_bubblewrap_is_reached_and_each_try_is_named(bwrap: None) -> None:
    as_user("nobody", lambda bench: nothing_is_reached(bench, outside(bench), BUBBLEWRAP))


@needs_overlays
def test_no_service_on_another_file_system_is_reached() -> None:
    def work(bench: Bench) -> None:
        place = outside(bench)
        mount_memory(place)
        nothing_is_reached(bench, place, OVERLAY)

    with_mounts(work)


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_a_service_in_the_workspace_is_not_reached_either(user: str) -> None:
    def work(bench: Bench) -> None:
        place = bench.workspace / "place"
        place.mkdir()
        nothing_is_reached(bench, place, OVERLAY)

    as_user(user, work)


@pytest.mark.parametrize("way", [COPY, READ_ONLY])
@pytest.mark.parametrize("user", USERS)
def test_no_service_is_reached_where_there_is_no_view(user: str, way: str) -> None:
    def work(bench: Bench) -> None:
        bench.files(f"cat > tries.py <<'END'\n{TRIES}\nEND")
        with services(outside(bench)) as living:
            paths = " ".join(f"'{path}'" for path in (living.fifo, living.stream, living.datagrams))
            bench.preview(f"/usr/bin/python3 -I tries.py {paths}", way)
            assert living.reached() == []
        assert "reached" not in bench.output

    as_user(user, work)


MESSAGE = """
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, sys.argv[1])
"""


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_a_message_to_a_socket_outside_of_a_view_is_named(user: str) -> None:
    def work(bench: Bench) -> None:
        bench.files(f"cat > message.py <<'END'\n{MESSAGE}\nEND")
        with services(outside(bench)) as living:
            report = bench.preview(f"/usr/bin/python3 -I message.py '{living.datagrams}'", OVERLAY)
            assert living.reached() == []
        assert report["sockets"] == [[str(living.datagrams), 1]] and "ConnectionRefusedError" in bench.output

    as_user(user, work)


LEFT_WAITING = """echo x > FIFO &
while read -r call _ < /proc/$!/syscall && [ "$call" != 257 ] && [ "$call" != 56 ]; do :; done 2> /dev/null
disown"""
"""Ends as soon as the process that it leaves behind is in openat(2)."""


@needs_overlays
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "text",
    [
        "echo x > FIFO",
        "cat FIFO",
        "timeout 5 sh -c 'exec 3> FIFO'",
        LEFT_WAITING,
        "trap : TERM; (sleep 0.03; kill $$) & echo x > FIFO",
    ],
    ids=["write", "read", "child", "left behind", "signalled"],
)
def test_a_fifo_outside_of_a_view_for_which_a_command_waits_is_named_and_ends_the_wait(user: str, text: str) -> None:
    def work(bench: Bench) -> None:
        with services(outside(bench)) as living:
            report = bench.preview(f"{text.replace('FIFO', str(living.fifo))}; echo goes on", OVERLAY, timeout=20)
            assert living.reached() == []
        assert [path for path, _ in report["sockets"]] == [str(living.fifo)], bench.output
        assert "goes on\n" in bench.output and not report["over"] and report["seconds"] < 10, bench.output

    as_user(user, work)


OWN = r"""
import os, socket, threading
server = socket.socket(socket.AF_UNIX); server.bind("own"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("own")
connection = server.accept()[0]
client.sendmsg([b"streamed"]); print(connection.recv(100))
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); receiver.bind("datagrams")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b"sent"], [], 0, "datagrams"); print(receiver.recv(100))
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\0own-name"); abstract.listen()
socket.socket(socket.AF_UNIX).connect("\0own-name"); print("abstract")
os.mkfifo("pipe")
reader = threading.Thread(target=lambda: print(open("pipe").read())); reader.start()
with open("pipe", "w") as file: file.write("piped")
reader.join()
one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.send(b"paired"); print(two.recv(100))
with open("/dev/stdout", "w") as file: file.write("said\n")
"""


def own_services_work(bench: Bench, way: str) -> None:
    bench.files(f"cat > own.py <<'END'\n{OWN}\nEND")
    report = bench.preview("/usr/bin/python3 -I own.py | cat; cat <(echo substituted)", way)
    said = bench.output
    for word in ("streamed", "sent", "abstract", "piped", "paired", "said", "substituted"):
        assert word in said, said
    assert report["sockets"] == []


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_sockets_and_fifos_that_a_command_makes_work_in_its_view(user: str) -> None:
    as_user(user, lambda bench: own_services_work(bench, OVERLAY))


def test_sockets_and_fifos_that_a_command_makes_work_by_bubblewrap(bwrap: None) -> None:
    as_user("nobody", lambda bench: own_services_work(bench, BUBBLEWRAP))


@needs_overlays
@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("is_covered", [False, True], ids=["outside", "in a layer"])
def test_a_device_anywhere_else_than_in_dev_cannot_be_opened(user: str, *, is_covered: bool) -> None:
    def work(bench: Bench) -> None:
        bench.more = {"roots": [str(bench.workspace), *([str(devices)] if is_covered else [])]}
        bench.preview(f"echo x >> '{devices}/null' || echo refused; cat /dev/null > /dev/null && echo usable", OVERLAY)
        assert bench.output.splitlines()[1:] == ["refused", "usable"], bench.output

    with public_directory() as directory:
        directory.chmod(0o777)
        devices = directory / "devices"
        devices.mkdir(mode=0o755)
        os.mknod(devices / "null", stat.S_IFCHR | 0o666, NULL)
        (devices / "null").chmod(0o666)
        if user == "root":
            work(Bench(directory))
            return
        with as_user_nobody() as status:
            if status.child:
                work(Bench(directory))
        assert status.code == 0


@needs_overlays
@pytest.mark.parametrize("user", USERS)
def test_the_machine_can_be_read_in_a_view_as_outside(user: str) -> None:
    def work(bench: Bench) -> None:
        place = outside(bench)
        (place / "file, with: signs").write_text("content\n")
        (place / "link").symlink_to("file, with: signs")
        text = f"cat '{place}/link'; ls /; readlink /bin; cat /etc/hostname; ls -d /root /srv"
        real = subprocess.run(["/bin/bash", "-c", text], capture_output=True, text=True, check=True).stdout
        report = bench.preview(f"{text}; echo x > '{place}/new'", OVERLAY)
        assert bench.output.startswith(real) and "new: Read-only file system" in bench.output
        assert report["code"] == 1

    as_user(user, work)
