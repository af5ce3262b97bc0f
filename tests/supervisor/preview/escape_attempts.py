"""What a previewed command may try in order to reach anything outside of its view, as lines for bash, by subject.

A line that exits with `REACHED` has made a system call that would be an escape by itself.
"""

from whisper_tui.system.syscalls import NUMBERS

REACHED = 99
PIDFD_OPEN = 434
ADD_KEY = NUMBERS.get("add_key", 100_000)
AT_FDCWD = -100


def made(name: str, *arguments: str, before: str = "", after: str = f"exit {REACHED} if $r >= 0") -> str:
    """Return a line that makes a system call."""
    number = NUMBERS.get(name, 100_000)
    return f"perl -e '{before}; $r = syscall({number}, {', '.join(arguments)}); {after}'"


BUFFER = "my $b = qq(\\0) x 4096"
ROOT_TREE = f'$t = syscall({NUMBERS.get("open_tree", 100_000)}, {AT_FDCWD}, "/", 0x8001)'

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
curl -s -m 2 --abstract-unix-socket $ABSTRACT http://x/
perl -MSocket -e 'socket(S,1,1,0);connect(S,pack_sockaddr_un("$ENV{OUT}/socket")) and syswrite(S,"x")'
perl -MSocket -e 'socket(S,1,1,0);connect(S,pack_sockaddr_un("\\0$ENV{ABSTRACT}")) and syswrite(S,"x")'
perl -MSocket -e 'socket(S,1,2,0);send(S,"x",0,pack_sockaddr_un("$ENV{OUT}/socket"))'
cp $OUT/socket here; curl -s -m 2 --unix-socket here http://x/
ln $OUT/socket here; curl -s -m 2 --unix-socket here http://x/
""".strip().splitlines()

FILES_MORE = r"""
exec 3< $OUT/file; echo x > /proc/self/fd/3
exec 3< $OUT/file; dd if=/dev/zero of=/proc/self/fd/3 bs=512 count=1
dd if=/dev/zero of=$OUT/file bs=512 count=1 oflag=direct
dd if=/dev/zero of=$OUT/file bs=512 count=1 conv=notrunc oflag=dsync
python3.11 -I -c 'import mmap; m = mmap.mmap(open("'$OUT'/file", "r+").fileno(), 5); m[0:1] = b"x"; m.flush()'
fallocate -p -l 4 $OUT/file
chattr +i $OUT/file
chattr +a $OUT
fsfreeze -f $OUT
fstrim $OUT
cp --reflink=always /bin/true $OUT/file
perl -e 'link "$ENV{OUT}/file", "l"; open F, ">>", "l"; print F "x"; close F; rename "l", "$ENV{OUT}/file"'
perl -e 'for (1..300) { unlink "l"; symlink $_ % 2 ? "/etc" : ".", "l"; open F, ">", "l/whisper-tui-escape"; close F }'
mkdir -p a/b/c && cd a/b/c && for i in $(seq 30); do cd ..; done; echo x > $OUT/file
mkfifo p; (timeout 2 cat p > $OUT/file &) ; timeout 2 sh -c 'echo x > p'
ulimit -c unlimited; cd $OUT; kill -SEGV $$
rename 's/file/moved/' $OUT/file; mv --exchange $OUT/file $OUT/directory; mv -T $OUT/directory $OUT/other
mknod $OUT/directory/w c 0 0; mknod w c 0 0; mv -f w $OUT/file
perl -e '$n = pack "Z*", "trusted.overlay.redirect"; syscall(188, ".", $n, "/etc", 4, 0)'; echo x > whisper-tui-escape
perl -e '$n = pack "Z*", "user.overlay.redirect"; syscall(188, ".", $n, "/etc", 4, 0)'; echo x > whisper-tui-escape
echo x > $STORE/0u/x; echo x > $STORE/layers.json; echo x > $STORE/report.json
rm -rf $STORE
ls $STORE/0u && exit 99
echo x > /proc/self/root/etc/whisper-tui-escape
echo x > /proc/self/task/self/root/usr/whisper-tui-escape
cp /bin/bash b; chmod 6755 b; ./b -p -c 'echo x > /etc/whisper-tui-escape'
setsid -f sh -c 'for i in $(seq 200); do echo x > $OUT/file; mv $OUT/file $OUT/g; mv $OUT/g $OUT/file; done'
(exec 0</dev/null 1>/dev/null 2>&1; while :; do echo x >> $OUT/file; done) & (while :; do touch $OUT/n; done) & true
""".strip().splitlines()

PROCESSES_MORE = [
    *r"""
perl -e '@h{split / /, $ENV{INHERITED}} = (); for (3..300) { exit 99 if !exists $h{$_} && -e "/proc/self/fd/$_" }'
perl -e 'for (glob "/proc/1/fd/*") { exit 99 if defined readlink or open F, ">>", $_ }'
dd if=/dev/zero of=/proc/1/mem bs=1 count=8 && exit 99
cat /proc/1/environ > /dev/null && exit 99
cat /proc/1/root/etc/hostname && exit 99
echo x > /proc/1/exe
echo x > /proc/1/clear_refs && exit 99
kill -9 1; kill -STOP 1; kill -USR1 1
dd if=/dev/zero of=/proc/$KEEPER/mem bs=1 count=8 && exit 99
kill -9 $KEEPER && exit 99
ls /proc/$KEEPER/fd && exit 99
kill -9 $PPID
gdb -p 1 -batch -ex 'call exit(1)'
strace -p 1 -o /dev/null & sleep 0.1; kill $! ; true
chrt -f -p 50 $VICTIM && exit 99
ionice -c 1 -p $VICTIM && exit 99
nsenter -t 1 -m true && exit 99
nsenter --net=/proc/$VICTIM/ns/net true && exit 99
for pid in $(seq 2 3000); do kill -9 $pid; done; true
fuser -k $OUT/file
echo 0 > /proc/$VICTIM/timerslack_ns && exit 99
perl -e 'open F, "<", "/proc/1/maps"; exit 99 if <F>'
""".strip().splitlines(),
    made("ptrace", "0x4206", "$ENV{VICTIM}+0", "0", "0"),
    made("ptrace", "16", "$ENV{VICTIM}+0", "0", "0"),
    made("ptrace", "0x4206", "1", "0", "0"),
    made("ptrace", "16", "1", "0", "0"),
    made("process_vm_writev", "1", "$v", "1", "$v", "1", "0", before='$s = "x"; $v = pack "pQ", $s, 1'),
    made("process_vm_readv", "$ENV{VICTIM}+0", "$v", "1", "$v", "1", "0", before='$s = "x"; $v = pack "pQ", $s, 1'),
    made("kcmp", "1", "$$", "0", "0", "0"),
    made("pidfd_getfd", f"syscall({PIDFD_OPEN}, 1, 0)", "0", "0"),
    f"perl -e 'exit {REACHED} if syscall({PIDFD_OPEN}, $ENV{{VICTIM}}+0, 0) >= 0'",
    made("prlimit64", "1", "7", "$l", "0", before='$l = pack "QQ", 1, 1'),
    made("migrate_pages", "$ENV{VICTIM}+0", "8", "$b", "$b", before=BUFFER),
    made("rt_sigqueueinfo", "$ENV{VICTIM}+0", "9", "$b", before=BUFFER),
    made("ioprio_set", "3", "0", "16384", after="1"),
    made("setpriority", "2", "0", "19", after="1"),
]

MOUNTS_MORE = [
    made("open_tree", str(AT_FDCWD), '"/"', "0x8001"),
    made("move_mount", "$t", '""', str(AT_FDCWD), '"/mnt"', "4", before=ROOT_TREE),
    made("fsopen", '"tmpfs"', "0"),
    made("fsopen", '"overlay"', "0"),
    made("fspick", str(AT_FDCWD), '"/"', "0"),
    made("mount_setattr", str(AT_FDCWD), '"/"', "0x8000", "$a", "32", before='$a = pack "QQQQ", 0, 1, 0, 0'),
    made("mount_setattr", str(AT_FDCWD), '"/usr"', "0", "$a", "32", before='$a = pack "QQQQ", 0, 1, 0, 0'),
    made("pivot_root", '"."', '"."'),
    made("umount2", '"/tmp"', "2"),
    made("umount2", '"/proc"', "2"),
    made("mount", '"none"', '"/mnt"', '"tmpfs"', "0", "0"),
    made("mount", '"/dev/vda"', '"/mnt"', '"ext4"', "0", "0"),
    made("chroot", '"."', before='mkdir "c"', after='chdir ".." for 1..30; open F, ">", "etc/whisper-tui-escape"'),
    made("setns", "fileno(F)", "0", before='open F, "<", "/proc/1/ns/mnt"', after="exit 99 if $r >= 0 && fileno F"),
    made("setns", "$p", "0x20000", before=f"$p = syscall({PIDFD_OPEN}, 1, 0)"),
    made("open_by_handle_at", str(AT_FDCWD), "$h", "0", before='$h = pack "IIQ", 8, 1, 2'),
    made("swapon", '"$ENV{OUT}/file"', "0"),
    made("quotactl", "0x800002", '"/dev/vda"', "0", "0"),
    made("acct", '"$ENV{OUT}/file"'),
    made("fanotify_init", "4", "2"),
    "unshare -Urm sh -c 'mount --bind $OUT /mnt; echo x > /mnt/file'",
    "unshare -Urm sh -c 'mount -o bind,remount,rw /; echo x > /etc/whisper-tui-escape'",
    "unshare -Urm sh -c 'umount -R /; umount -l $OUT; umount -l /tmp; echo x > $OUT/file'",
    "unshare -Urm sh -c 'mount --move /tmp /mnt; echo x > $OUT/file'",
    "mkdir u w; unshare -Urm sh -c 'mount -t overlay o -o lowerdir=/etc,upperdir=u,workdir=w /etc; touch /etc/x'",
    "unshare -Urm sh -c 'mount -t proc p /proc; echo x > /proc/1/root/etc/whisper-tui-escape'",
    "unshare -Urm sh -c 'unshare -Urm sh -c \"umount -l /tmp; mount -o bind,remount,rw /; echo x > $OUT/file\"'",
    "unshare -UrC sh -c 'mkdir /sys/fs/cgroup/whisper-escape'",
    "unshare -Urn sh -c 'ip link add escape0 type dummy; ip link set lo down'",
    "unshare -Urpif --mount-proc sh -c 'kill -9 -1; echo x > $OUT/file'",
    "unshare -Ur nsenter -t 1 -m sh -c 'echo x > $OUT/file'",
    "exec 3<> /dev/fuse && test -c /dev/fuse && exit 99",
    "exec 3<> /dev/kvm && test -c /dev/kvm && exit 99",
    "exec 3< /dev/vda && exit 99",
    "mknod k c 10 229 && exec 3<> k && exit 99",
    "echo x > /proc/sys/kernel/ns_last_pid",
]  # fmt: skip

KERNEL_MORE = [
    made("io_uring_setup", "8", "$b", before=BUFFER),
    made("bpf", "13", "$b", "64", before=BUFFER),
    made("bpf", "5", "$b", "120", before=f"{BUFFER}; substr($b, 0, 8) = pack(q(II), 1, 1)"),
    made("perf_event_open", "$b", "$ENV{VICTIM}+0", "-1", "-1", "0", before=BUFFER),
    made("perf_event_open", "$b", "-1", "0", "-1", "0", before=BUFFER),
    made("userfaultfd", "0", after="1"),
    made("add_key", '"user"', '"whisper-escape"', '"x"', "1", "-4", after="1"),
    made("add_key", '"user"', '"whisper-escape"', '"x"', "1", "-5", after="1"),
    made("keyctl", "22", "-1", "-4", after=f"syscall({ADD_KEY}, qq(user), qq(whisper-escape), qq(x), 1, $r)"),
    made("request_key", '"user"', '"whisper-outside"', '""', "-3"),
    made("init_module", "$b", "100", '""', before=BUFFER),
    made("delete_module", '"ext4"', "2048"),
    made("kexec_load", "0", "0", "0", "0"),
    made("reboot", "0xfee1dead", "672274793", "0"),
    made("settimeofday", "$b", "0", before=BUFFER),
    made("clock_settime", "0", "$b", before=BUFFER),
    made("sethostname", '"whisper-escape"', "14"),
    made("iopl", "3"),
    made("ioperm", "128", "1", "1"),
    made("vhangup", before=""),
    made("lookup_dcookie", "1", "$b", "100", before=BUFFER),
    made("shmget", "$ENV{SHARED_KEY}+0", "4096", "0666", after=f"exit {REACHED} if $r >= 0"),
    *r"""
echo mem > /sys/power/state
echo 3 > /proc/sys/vm/drop_caches
echo 1 > /proc/sys/kernel/panic
echo whisper-escape > /proc/self/attr/current
echo add > /sys/class/net/lo/uevent && exit 99
echo $$ > /sys/fs/cgroup/cgroup.procs && exit 99
echo 1 > /sys/fs/cgroup/cgroup.freeze && exit 99
cat /proc/kcore > /dev/null && exit 99
echo 0 > /proc/sys/kernel/randomize_va_space && exit 99
echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward
echo -1000 > /proc/self/oom_score_adj
wall whisper-escape; write root < /dev/null
at now < /dev/null; systemctl --user start x; dbus-send --session x
""".strip().splitlines(),
]  # fmt: skip

SERVICES_MORE = r"""
perl -MSocket -e 'exit 99 if socket(S,40,1,0)'
perl -MSocket -e 'exit 99 if socket(S,17,3,0)'
perl -MSocket -e 'exit 99 if socket(S,44,3,0)'
perl -MSocket -e 'exit 99 if socket(S,38,5,0)'
perl -MSocket -e 'socket(S,16,3,15) and send(S,"add@/escape\0",0,pack("SSII",16,0,0,1)) and exit 99'
perl -MSocket -e 'socket(S,16,3,9); send(S,pack("ISSIIZ*",24,1107,5,1,0,"escape"),0)'
perl -MSocket -e 'exit 99 if socket(S,2,3,1)'
perl -MSocket -e 'socket(S,1,2,0);send(S,"x",0,pack_sockaddr_un("\0$ENV{ABSTRACT}"))'
perl -MSocket -e 'socket(S,1,5,0);connect(S,pack_sockaddr_un("\0$ENV{ABSTRACT}")) and syswrite(S,"x")'
perl -MSocket -e 'chdir $ENV{OUT}; socket(S,1,1,0);connect(S,pack_sockaddr_un("socket")) and syswrite(S,"x")'
perl -MSocket -e 'symlink "$ENV{OUT}/socket","s"; socket(S,1,1,0);connect(S,pack_sockaddr_un("s")) and syswrite(S,"x")'
perl -MSocket -e 'socket(S,1,1,0);connect(S,pack_sockaddr_un("/proc/self/root$ENV{OUT}/socket")) and syswrite(S,"x")'
perl -MSocket -e 'rename "$ENV{OUT}/socket","m"; socket(S,1,1,0);connect(S,pack_sockaddr_un("m")) and syswrite(S,"x")'
perl -MSocket=:all -e '$a="\0"x10 ."\xff\xff\x7f\0\0\1";socket(S,10,1,0);connect(S,pack_sockaddr_in6($ENV{PORT},$a))'
perl -MSocket -e 'socket(S,2,2,0);setsockopt(S,1,6,1);send(S,"x",0,pack_sockaddr_in($ENV{PORT},"\xff\xff\xff\xff"))'
unshare -Urn sh -c 'ip link set lo up; exec 3<>/dev/tcp/127.0.0.1/$PORT; echo x >&3'
ip link add escape0 type dummy; ip link set lo down; ip addr add 10.9.8.7/24 dev lo
ip route flush table all; iptables -F; nft flush ruleset
exec 3<>/dev/tcp/10.255.255.1/$PORT; echo x >&3
nsenter --net=/proc/1/ns/net sh -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT; echo x >&3'
""".strip().splitlines()

GROUPS = {
    "files": FILES + FILES_MORE,
    "processes": PROCESSES + PROCESSES_MORE,
    "mounts": MOUNTS + MOUNTS_MORE,
    "kernel": KERNEL + KERNEL_MORE,
    "services": SERVICES + SERVICES_MORE,
}
"""`test_escapes` sets their variables."""
