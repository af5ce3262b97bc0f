"""What a previewed command cannot do: reach anything outside of its view, before anybody has approved it."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.preview.trees import as_nobody, described, public_directory
from whisper_tui.supervisor.keeper.sandbox import PreviewedCommand
from whisper_tui.supervisor.preview.overlay_mounts import NoPreview
from whisper_tui.supervisor.preview.preview_process import PreviewStart, start

pytestmark = needs_overlays

BASH = "/bin/bash"
MARK = "PREVIEW_ESCAPE_TEST"

FILES = """
echo x > $OUT/file
echo x >> $OUT/file
: > $OUT/file
rm -rf $OUT
rm -f $OUT/file
mv $OUT/file $OUT/moved
mv $OUT $OUT.moved
chmod 000 $OUT/file
chmod 777 $OUT
chown 1:1 $OUT/file
touch -d 2001-01-01 $OUT/file
setfattr -n user.x -v y $OUT/file
ln $OUT/file linked; echo x >> linked
ln -s $OUT/file linked; echo x >> linked
mkdir $OUT/made; mknod $OUT/made/fifo p
truncate -s 100M $OUT/file
cp /bin/true $OUT/file
sed -i s/a/b/ $OUT/file
dd if=/dev/zero of=$OUT/file bs=1M count=1
flock $OUT/file sh -c 'echo x > $OUT/file'
tar cf - /etc/hostname | tar xf - -C $OUT
echo x > /proc/self/root/$OUT/file
echo x > /proc/1/root/$OUT/file
echo x > /proc/$VICTIM/root/$OUT/file
echo x > /proc/$VICTIM/cwd/file
echo x > /proc/$VICTIM/fd/1
cat /proc/$VICTIM/environ >&2
cat $OUT/fifo & echo x > $OUT/fifo
(setsid sh -c 'sleep 0.2; echo x > $OUT/file' >/dev/null 2>&1 &) ; true
nohup sh -c 'while :; do echo x > $OUT/file; done' >/dev/null 2>&1 & disown; true
trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep 600; echo x > $OUT/file) & true
echo x > /etc/whisper-tui-escape
echo x > /usr/whisper-tui-escape
echo x > /dev/shm/whisper-tui-escape
echo x > /run/whisper-tui-escape
echo x > /var/lib/whisper-tui-escape
""".strip().splitlines()

PROCESSES = """
kill -9 $VICTIM
kill -STOP $VICTIM
kill -9 -1
kill -9 -$VICTIM
pkill -9 -f $MARK_OF_VICTIM
killall -9 sleep
renice 19 $VICTIM
taskset -p 1 $VICTIM
gdb -p $VICTIM -batch -ex 'call exit(1)'
strace -p $VICTIM -o /dev/null
dd if=/dev/zero of=/proc/$VICTIM/mem bs=1 count=8
echo 1000 > /proc/$VICTIM/oom_score_adj
prlimit --pid $VICTIM --nofile=1
nsenter -t $VICTIM -m -- sh -c 'echo x > $OUT/file'
nsenter -t 1 -a -- sh -c 'echo x > $OUT/file'
""".strip().splitlines()

MOUNTS = """
mount --bind $OUT /mnt; echo x > /mnt/file
mount -o remount,rw /; echo x > /etc/whisper-tui-escape
mount -o remount,rw,bind /; echo x > /usr/whisper-tui-escape
mount -t tmpfs tmpfs /mnt
umount /tmp; echo x > $OUT/file
umount -l /tmp; echo x > $OUT/file
umount -a -l; echo x > $OUT/file
unshare -rm sh -c 'umount -l /tmp; echo x > $OUT/file'
unshare -rm sh -c 'mount -o remount,rw,bind /; echo x > /usr/whisper-tui-escape'
unshare -Urmpf --mount-proc sh -c 'echo x > $OUT/file'
chroot / sh -c 'echo x > $OUT/file'
pivot_root . .
mknod disk b 254 0; echo x > disk
mknod memory c 1 1; cat memory | head -c 10 > got
cat /dev/vda | head -c 10
cat /dev/mem | head -c 10
echo x > /dev/kmsg
losetup -f
swapoff -a
""".strip().splitlines()

KERNEL = """
echo whisper-escape > /proc/sys/kernel/hostname
hostname whisper-escape
sysctl -w kernel.domainname=whisper-escape
echo '|/bin/false' > /proc/sys/kernel/core_pattern
echo h > /proc/sysrq-trigger
date -s 2001-01-01
modprobe dummy
insmod /tmp/none.ko
dmesg -C
mkdir /sys/fs/cgroup/whisper-escape
echo 1 > /sys/kernel/mm/ksm/run
keyctl add user whisper-escape x @u
ipcmk -M 100
sudo -n sh -c 'echo x > $OUT/file'
su -c 'echo x > $OUT/file' root < /dev/null
newgrp root < /dev/null
crontab - < /dev/null
""".strip().splitlines()

SERVICES = """
exec 3<>/dev/tcp/127.0.0.1/$PORT; echo x >&3
exec 3<>/dev/tcp/localhost/$PORT; echo x >&3
exec 3<>/dev/tcp/0.0.0.0/$PORT; echo x >&3
echo x > /dev/udp/127.0.0.1/$PORT
curl -s -m 2 http://127.0.0.1:$PORT/
curl -s -m 2 --unix-socket $OUT/socket http://x/
curl -s -m 2 --abstract-unix-socket whisper-escape http://x/
perl -MSocket -e 'socket(S,1,1,0);connect(S,pack_sockaddr_un("$ENV{OUT}/socket")) and syswrite(S,"x")'
perl -MSocket -e 'socket(S,1,1,0);connect(S,pack_sockaddr_un("\\0whisper-escape")) and syswrite(S,"x")'
perl -MSocket -e 'socket(S,1,2,0);send(S,"x",0,pack_sockaddr_un("$ENV{OUT}/socket"))'
cp $OUT/socket here; curl -s -m 2 --unix-socket here http://x/
ln $OUT/socket here; curl -s -m 2 --unix-socket here http://x/
""".strip().splitlines()

ATTEMPTS = [*FILES, *PROCESSES, *MOUNTS, *KERNEL, *SERVICES]
PLANTED = [f"{place}/whisper-tui-escape" for place in ("/etc", "/usr", "/dev/shm", "/run", "/var/lib")]


class Outside:
    """What a previewed command must not touch: files, a process, and services on sockets."""

    def __init__(self, directory: Path) -> None:
        self.files = directory / "outside"
        self.files.mkdir()
        (self.files / "file").write_text("kept\n")
        (self.files / "directory").mkdir()
        os.mkfifo(self.files / "fifo")
        self._victim = subprocess.Popen(
            ["/bin/sleep", "600"], env={"TOKEN": "hidden"}, cwd=self.files, start_new_session=True
        )
        self.victim = self._victim.pid
        self._sockets = [_tcp(), _unix(str(self.files / "socket")), _unix("\0whisper-escape")]
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self._datagrams.setblocking(False)
        self._fifo = os.open(self.files / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self._before = self._seen()

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    def _seen(self) -> object:
        found = Path(f"/proc/{self.victim}")
        limits, score = (found / "limits").read_text(), (found / "oom_score_adj").read_text()
        scheduling = (os.getpriority(os.PRIO_PROCESS, self.victim), os.sched_getaffinity(self.victim))
        machine = (socket.gethostname(), Path("/proc/sys/kernel/core_pattern").read_text())
        return described(self.files), limits, score, scheduling, machine, Path("/proc/swaps").read_text()

    def touched(self) -> list[str]:
        """What was changed or reached."""
        found = []
        if self._victim.poll() is not None or "T (" in Path(f"/proc/{self.victim}/status").read_text():
            found.append("the process was ended or stopped")
        elif self._seen() != self._before:
            found.append("a file, a process or a setting differs")
        found += [path for path in PLANTED if os.path.lexists(path)]
        found += ["a connection arrived" for each in self._sockets if _arrived(each)]
        with suppress(BlockingIOError):
            self._datagrams.recv(10)
            found.append("a datagram arrived")
        with suppress(BlockingIOError):
            if os.read(self._fifo, 10):
                found.append("the FIFO got bytes")
        return found

    def close(self) -> None:
        for each in (*self._sockets, self._datagrams):
            each.close()
        os.close(self._fifo)
        with suppress(ProcessLookupError):
            os.killpg(self.victim, signal.SIGKILL)
        self._victim.wait()


def _tcp() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made


def _unix(name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(name)
    made.listen()
    made.setblocking(False)
    return made


def _arrived(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def outside(directory: Path) -> Iterator[Outside]:
    made = Outside(directory)
    try:
        yield made
    finally:
        made.close()


def left_over(mark: str) -> list[int]:
    """The processes with this mark in their environment."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


def tried(world: Outside, directory: Path, attempt: str, number: int) -> None:
    """Preview one attempt, and check that nothing outside has noticed."""
    mark = f"{MARK}={os.getpid()}-{number}"
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "OUT": str(world.files),
        "VICTIM": str(world.victim),
        "PORT": str(world.port),
        "MARK_OF_VICTIM": "sleep 600",
        MARK: mark.partition("=")[2],
    }
    workspace = directory / f"w{number}"
    workspace.mkdir()
    options = {"roots": (str(workspace),), "hide": (), "network": False, "max_bytes": 1 << 30}
    null = os.open(os.devnull, os.O_RDWR)
    files = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in range(3)]

    command = PreviewedCommand(BASH, ["bash", "-c", attempt], environment, files)
    pid = start(PreviewStart(str(directory / f"s{number}"), options, str(workspace), None, command))
    os.close(null)
    os.waitpid(pid, 0)
    assert (directory / f"s{number}" / "report.json").exists(), attempt
    assert world.touched() == [], attempt
    assert left_over(mark) == [], attempt


def all_tried(directory: Path, attempts: list[str]) -> None:
    for number, attempt in enumerate(attempts):
        with outside(directory) as world:
            tried(world, directory, attempt, number)
        subprocess.run(["/bin/rm", "-rf", str(directory / "outside")], check=True)


GROUPS = {"files": FILES, "processes": PROCESSES, "mounts": MOUNTS, "kernel": KERNEL, "services": SERVICES}


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_nothing_that_a_command_tries_in_a_preview_has_an_effect_outside(group: str) -> None:
    with public_directory() as directory:
        try:
            all_tried(directory, GROUPS[group])
        except NoPreview as problem:
            pytest.skip(str(problem))


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("group", GROUPS)
def test_nothing_that_an_ordinary_users_command_tries_has_an_effect_outside(group: str) -> None:
    with public_directory() as directory:
        directory.chmod(0o777)
        with as_nobody() as status:
            if status.child:
                all_tried(directory, GROUPS[group])
        assert status.code == 0
