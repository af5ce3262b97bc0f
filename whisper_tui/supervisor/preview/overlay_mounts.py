"""The view of a previewed command: overlays of the real files where it works, and of all others to read.

The layers are planned by the keeper's child before it makes namespaces, and mounted inside of them. `docs/preview.md`
lists what the view leaves out.
"""

import errno
import json
import os
import re
import stat
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from whisper_tui.changes.file_trees import (
    Links,
    TreeEntry,
    attributes,
    copy_node,
    dress,
    make_alike,
    overlay_mark,
    remove_tree,
    stamp,
)
from whisper_tui.changes.overlay_diff import LAYERS
from whisper_tui.supervisor.preview.machine_places import ShownPlace, mounted_places, places_made_anew
from whisper_tui.system import run_files, syscalls

RDONLY, NOSUID, NODEV, NOEXEC, BIND, REC, PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
"""Flags of mount(2)."""
_SET_READ_ONLY, _SET_NOSUID, _SET_NODEV = 1, 2, 4
"""MOUNT_ATTR_* of mount_setattr(2)."""
_DETACH = 2
"""MNT_DETACH of umount2(2)."""
_RECURSIVE = 0x8000
_AT_FDCWD = -100
MOST_LAYERS = 400
"""Overlays of one view."""
SMALL_FILE = 1 << 20
"""Bytes up to which a file beside a mount point is copied into the view; a larger one can only be read there."""
ALWAYS_ROOTS = ("/tmp", "/var/tmp")  # noqa: S108 (covered, not used)
"""Directories for temporary files, which every command may expect to be writable."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
DEVICE_MOUNTS = ("/dev/pts", "/dev/shm", "/dev/mqueue")  # noqa: S108 (of the view)
"""Directories in /dev that have no devices of the machine."""
TERMINAL = "/dev/console"
"""Where a command finds its terminal in the view."""
_MOST_DEVICES, _MOST_DIRECTORIES = 200, 50
"""Names in the /dev of a view, and directories in it that are there from the real one."""


class NoPreview(Exception):
    """Why a command cannot run in a view here, as a clause."""


Layer = dict[str, Any]
_Opened = tuple[int | None, int, int]


def outermost(roots: Iterable[str]) -> list[str]:
    """Return the real directories among these paths that need an overlay of their own."""
    found = {os.path.realpath(path) for path in (*roots, *ALWAYS_ROOTS)}
    real = sorted(path for path in found if path != "/" and os.path.isdir(path))
    kept: list[str] = []
    for path in real:
        above = next((other for other in kept if path.startswith(f"{other}/")), None)
        if above is None or _has_foreign_parent(path, above):
            kept.append(path)
    return kept


def _has_foreign_parent(path: str, above: str) -> bool:
    """True if another user owns a directory on the way: an ordinary user's overlay cannot copy it up."""
    if os.geteuid() == 0:
        return False
    parent = os.path.dirname(path)
    while len(parent) > len(above):
        if os.lstat(parent).st_uid != os.geteuid():
            return True
        parent = os.path.dirname(parent)
    return False


def plan_layers(store: str, roots: Iterable[str], *, memory: bool) -> list[Layer]:
    """Make the upper and work directories of a view below the store, and return its layers. Raises `NoPreview`."""
    layers: list[Layer] = []
    mounts = mount_points()
    for root in outermost(roots):
        _plan(store, root, layers, mounts, memory=memory)
    return layers


def write_layers(store: str, layers: Sequence[Layer], began_ns: int, *, memory: bool) -> None:
    """Note the layers for `overlay_diff`, before the command starts."""
    marks = "trusted" if os.geteuid() == 0 else "user"
    content = {"layers": list(layers), "began_ns": began_ns, "marks": marks, "memory": memory}
    run_files.write_json(os.path.join(store, LAYERS), content)


def time_of_file_system(store: str) -> int:
    """Return the time in nanoseconds as the file system of the store stamps it."""
    path = os.path.join(store, ".now")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        return os.stat(path).st_ctime_ns
    finally:
        os.unlink(path)


def mount_points() -> set[str]:
    """Return the mount points of this mount namespace."""
    with open("/proc/self/mountinfo", "rb") as file:
        return {os.fsdecode(_OCTAL.sub(_unescaped, line.split(b" ")[4])) for line in file}


_OCTAL = re.compile(rb"\\([0-7]{3})")
"""How the kernel writes blanks, tabs, line feeds and backslashes in paths."""


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def _plan(store: str, root: str, layers: list[Layer], mounts: set[str], *, memory: bool) -> None:
    pending = [root]
    while pending:
        path = pending.pop()
        if len(layers) >= MOST_LAYERS:
            mounted = min(mount for mount in mounts if mount.startswith(f"{root}/"))
            raise NoPreview(
                f"{mounted} is mounted below {root}, beside more than {MOST_LAYERS} directories: unmount it, or remove "
                "directories there that nothing uses"
            )
        number = len(layers)
        base = os.path.join(store, "t") if memory else store
        upper, work = f"{base}/{number}u", f"{base}/{number}w"
        os.makedirs(upper, 0o700)
        if not any(mount.startswith(f"{path}/") for mount in mounts):
            os.makedirs(work, 0o700)
            layers.append({"path": path, "upper": upper, "work": work, "kind": "overlay", "base": {}})
            _dress_like(upper, path)
            continue
        # An overlay may not cover a mount point: such a directory is made anew, and its children get overlays.
        held: dict[str, int | None] = {}
        layers.append({"path": path, "upper": upper, "work": "", "kind": "split", "base": held})
        # It may be gone by now, with what was mounted there: then it is empty in the view.
        with suppress(FileNotFoundError):
            pending += _fill(store, path, upper, held)
            os.chmod(upper, stat.S_IMODE(os.lstat(path).st_mode))


def _dress_like(upper: str, path: str) -> None:
    found = stamp(path)
    if found is not None:
        dress(upper, found, attributes(path))


def _fill(store: str, path: str, upper: str, held: dict[str, int | None]) -> list[str]:
    """Fill the copy of a directory. Returns the directories in it that need layers of their own."""
    below = []
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            target = os.path.join(upper, entry.name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    os.mkdir(target)
                    held[entry.name] = None
                    if entry.path != store:
                        os.listdir(entry.path)
                        below.append(entry.path)
                elif entry.is_symlink() or (entry.is_file() and entry.stat().st_size < SMALL_FILE):
                    copy_node(entry.path, target)
                    held[entry.name] = os.lstat(target).st_ctime_ns
                elif entry.is_file():
                    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
                    held[entry.name] = -1
            except OSError as error:
                # Closed to this user, just removed by somebody else, as happens in /tmp, or a name of a namespace.
                if error.errno not in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EINVAL):
                    raise
                held[entry.name] = 0
    return below


_RESTRICTIONS = (
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor gives them only to programs it knows"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
)
"""Settings by which a system gives ordinary users no namespaces, with the value that does so."""


def why_no_namespaces() -> str:
    """Return what may keep this process from namespaces of its own, as a clause. Empty: nothing that is known."""
    for path, value, clause in _RESTRICTIONS if os.geteuid() else ():
        with suppress(OSError), open(path, encoding="ascii") as file:
            if file.read().strip() == value:
                return clause
    with suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        if "\nSeccomp:\t0\n" not in file.read():
            return "a filter of system calls is in force, as in containers"
    return ""


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    """Mount. Raises `NoPreview`."""
    given = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    try:
        syscalls.call("mount", *given, flags, None if data is None else os.fsencode(data))
    except OSError as error:
        what = kind or "a directory"
        raise NoPreview(f"{what} cannot be mounted on {target}: {error.strerror}") from None


def set_attributes(path: str, on: int, off: int, *, recursive: bool = False) -> None:
    """Change attributes of a mount, or of all mounts below as well. Raises `NoPreview`."""
    packed = struct.pack("=QQQQ", on, off, 0, 0)
    try:
        flags = _RECURSIVE if recursive else 0
        syscalls.call("mount_setattr", _AT_FDCWD, os.fsencode(path), flags, packed, len(packed))
    except OSError as error:
        raise NoPreview(f"{path} cannot be made read-only: {error.strerror} (it needs Linux 5.12)") from None


def build(
    store: str, layers: Sequence[Layer], hide: Sequence[str], terminal: str | None, *, lasting: bool = False
) -> dict[str, str]:
    """Make the view the root of this mount namespace, which is the command's alone. Raises `NoPreview`, `OSError`.

    `lasting`: the layers are mounted again by later commands, whatever happens meanwhile (decision 44). Returns the
    upper directories, as paths of descriptors that stay open, by the directories that they cover.
    """
    own = os.geteuid() == 0
    options = "index=on,redirect_dir=off" if own else "userxattr"
    if not lasting:
        options += ",volatile"
    # The layers and the files beside mount points are opened before anything covers their paths.
    opened = [_opened(layer) for layer in layers]
    files = [
        (os.path.join(layer["path"], name), _opened_file(layer, name))
        for layer in layers
        for name, ctime in layer["base"].items()
        if ctime == -1
    ]
    mounts = {path for path in mount_points() if not path.startswith(f"{store}/")}
    _devices(store, terminal)
    root = _machine(store, mounts, [layer["path"] for layer in layers], "" if own else ",userxattr")
    covered = _cover(root, layers, opened, options)
    for path, fd in files:
        if os.path.lexists(f"{root}{path}"):
            mount(_of(fd), f"{root}{path}", None, BIND)
        os.close(fd)
    for path, kept in (("/dev", f"{store}/dev"), ("/proc", "/proc"), ("/sys", "/sys")):
        mount(kept, f"{root}{path}", None, BIND | REC)
    _enter(root)
    set_attributes("/", _SET_READ_ONLY | _SET_NOSUID, 0, recursive=True)
    for path in (*covered, "/dev", "/dev/shm"):  # noqa: S108 (a mount of its own)
        set_attributes(path, _SET_NODEV, _SET_READ_ONLY)
    # Opened before the directory in which it lies is covered as well.
    closed = os.open(os.path.join(store, "closed"), os.O_PATH | os.O_CLOEXEC)
    for path in (*hide, store):
        _hide(closed, path)
    os.close(closed)
    return {layer["path"]: _of(upper) for layer, (_, upper, _) in zip(layers, opened, strict=True)}


def _machine(store: str, mounts: Collection[str], layers: Sequence[str], marks: str) -> str:
    """Mount what a view shows of the machine. Returns the directory that will be its root. Raises `NoPreview`."""
    base = os.path.join(store, "view")
    # An overlay without an upper directory needs two lower ones, and they may not lie in each other.
    mount("tmpfs", base, "tmpfs", NOSUID | NODEV, "mode=755")
    root, empty = os.path.join(base, "root"), os.path.join(base, "empty")
    for path in (root, empty):
        os.mkdir(path, 0o755)
    try:
        _mount_dead("/", root, empty, marks)
        places = mounted_places(mounts, layers)
    except NoPreview:
        mount("tmpfs", root, "tmpfs", NOSUID | NODEV, "mode=755")
        places = places_made_anew(mounts, layers, store)
    for place in places:
        try:
            _show(place, root, empty, marks)
        except (NoPreview, OSError):
            if not place.is_mount or any(layer.startswith(f"{place.path}/") for layer in layers):
                raise
    for path in layers:
        if not os.path.isdir(f"{root}{path}"):
            with suppress(OSError):  # It is gone, or it lies in something that is not shown.
                os.makedirs(f"{root}{path}")
    return root


def _show(place: ShownPlace, root: str, empty: str, marks: str) -> None:
    target = f"{root}{place.path}"
    if place.kind == "link":
        os.symlink(os.readlink(place.path), target)
    elif place.kind == "dead":
        if stat.S_ISFIFO(place.mode) or stat.S_ISSOCK(place.mode):
            os.mknod(target, place.mode)
    elif place.kind == "file":
        fd = os.open(place.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                if not os.path.lexists(target):
                    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
                mount(_of(fd), target, None, BIND)
        finally:
            os.close(fd)
    else:
        if not os.path.isdir(target):
            os.mkdir(target)
        if place.kind == "overlay":
            _mount_dead(place.path, target, empty, marks)
        else:
            os.chmod(target, place.mode)


def _mount_dead(path: str, target: str, empty: str, marks: str) -> None:
    """Show a directory through an overlay that cannot be changed, in which sockets and FIFOs are dead."""
    try:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoPreview(f"{path} cannot be opened: {error.strerror}") from None
    try:
        mount("overlay", target, "overlay", RDONLY | NOSUID | NODEV, f"lowerdir={empty}:{_of(fd)}{marks}")
    finally:
        os.close(fd)


def _enter(root: str) -> None:
    """Make a directory the root of this mount namespace, and leave nothing else in it. Raises `NoPreview`."""
    os.chdir(root)
    try:
        # The old root is then on top of the new one, in the same place.
        syscalls.call("pivot_root", b".", b".")
        syscalls.call("umount2", b".", _DETACH)
    except OSError as error:
        raise NoPreview(f"it cannot have a root of its own: {error.strerror}") from None
    os.chdir("/")


def _cover(root: str, layers: Sequence[Layer], opened: Sequence[_Opened], options: str) -> list[str]:
    """Mount the layers below a root. Returns the directories that they cover, and leaves only the upper ones open.

    Other programs go on removing files, in /tmp all the time. A directory that is gone since the plan was made is
    empty in the view, and such a file is empty and read-only, if a layer above holds their names.
    """
    covered = []
    for layer, (lower, upper, work) in zip(layers, opened, strict=True):
        path = layer["path"]
        if os.path.isdir(f"{root}{path}"):
            if layer["kind"] == "split" or lower is None:
                mount(_of(upper), f"{root}{path}", None, BIND)
            else:
                data = f"lowerdir={_of(lower)},upperdir={_of(upper)},workdir={_of(work)},{options}"
                mount("overlay", f"{root}{path}", "overlay", 0, data)
            covered.append(path)
        for fd in (work,) if lower is None else (lower, work):
            os.close(fd)
    return covered


def _opened(layer: Layer) -> _Opened:
    """Return the descriptors of the directory, which is None if it is gone, of the upper and of the work directory."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    lower = None
    with suppress(FileNotFoundError, NotADirectoryError):
        lower = os.open(layer["path"], flags)
    work = layer["work"] or layer["upper"]
    return lower, os.open(layer["upper"], flags), os.open(work, flags)


def _opened_file(layer: Layer, name: str) -> int:
    """Return a descriptor of a large file, or of its empty stand-in if it is gone or is no file any more."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError, NotADirectoryError):
        found = os.open(os.path.join(layer["path"], name), flags)
        if stat.S_ISREG(os.fstat(found).st_mode):
            return found
        os.close(found)
    return os.open(os.path.join(layer["upper"], name), flags)


def _of(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _hide(closed: int, path: str) -> None:
    """Cover a directory or a file with something that cannot be read. `closed`: a file that nobody can read."""
    if os.path.isdir(path):
        mount("tmpfs", path, "tmpfs", NOSUID | NODEV | RDONLY, "mode=000")
    elif os.path.lexists(path) and not os.path.islink(path):
        mount(_of(closed), path, None, BIND)


def _devices(store: str, terminal: str | None) -> None:
    """Mount a /dev with the harmless devices, and with the terminal of the command, in the store.

    Other names can be made in it, which tells what devices the command tried to write to, but stay empty.
    """
    directory = os.path.join(store, "dev")
    mount("tmpfs", directory, "tmpfs", NOSUID | NODEV, f"mode=755,size=4k,nr_inodes={_MOST_DEVICES}")
    for name in _device_directories():
        os.mkdir(os.path.join(directory, name))
    for name in _DEVICES:
        _bind_file(f"/dev/{name}", os.path.join(directory, name))
    for name, target in _DEVICE_LINKS:
        os.symlink(target, os.path.join(directory, name))
    for path in DEVICE_MOUNTS:
        os.mkdir(os.path.join(directory, os.path.basename(path)))
    mount("tmpfs", os.path.join(directory, "shm"), "tmpfs", NOSUID | NODEV, "mode=1777")
    mount("devpts", os.path.join(directory, "pts"), "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    if terminal is not None:
        _bind_file(terminal, os.path.join(directory, os.path.basename(TERMINAL)))
    _fill_up(directory)


def _device_directories() -> list[str]:
    """Return the directories in the real /dev, such as mapper and disk/by-id, by their paths in it."""
    found: list[str] = []
    taken = {TERMINAL, *DEVICE_MOUNTS, *(f"/dev/{name}" for name in (*_DEVICES, *dict(_DEVICE_LINKS)))}
    for place, names, _ in os.walk("/dev"):
        paths = {name: os.path.join(place, name) for name in names}
        apart = {*taken, *filter(os.path.islink, paths.values()), *filter(os.path.ismount, paths.values())}
        names[:] = [name for name, path in paths.items() if path not in apart]
        found += [os.path.relpath(paths[name], "/dev") for name in names]
    return found[:_MOST_DIRECTORIES]


def _fill_up(directory: str) -> None:
    """Use up the only page of a file system, for as long as this process runs."""
    path = os.path.join(directory, "full~")
    with open(path, "wb") as file:
        file.write(b"x")
    # Not open for writing, which would keep the mount from becoming read-only. Never closed: that would free the page.
    os.open(path, os.O_PATH | os.O_CLOEXEC)
    os.unlink(path)


def _bind_file(source: str, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    mount(source, target, None, BIND)


def prepare(store: str, layers: Sequence[Layer], began_ns: int, *, memory: bool) -> None:
    """Make the directories of a store that `build` mounts on, and write down its layers."""
    make_places(store)
    write_layers(store, layers, began_ns, memory=memory)


def make_places(store: str) -> None:
    """Make the directories of a store that `build` mounts on."""
    for name in ("dev", "empty", "view"):
        os.mkdir(os.path.join(store, name), 0o755)
    os.close(os.open(os.path.join(store, "closed"), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))


def save_outside(store: str) -> None:
    """Copy upper directories in memory to the disk, while the namespace that holds them still exists.

    The records of overlayfs are written beside them: the disk may be on overlayfs itself, which takes no whiteouts.
    """
    # They are not read here: in a user namespace the owners of most real files have no number.
    path = os.path.join(store, LAYERS)
    found = run_files.read_json(path)
    links: Links = {}
    for number, layer in enumerate(found["layers"]):
        source, target = layer["upper"], os.path.join(store, f"{number}u")
        remove_tree(target)
        records = _copy_upper(source, target, links)
        if layer["kind"] == "split":
            layer["base"] = _copied_base(layer["base"], source, target)
        else:
            layer["records"] = records
        layer["upper"] = target
    found["memory"] = False
    run_files.write_json(path, found)


def _copy_upper(source: str, target: str, links: Links) -> dict[str, list[str]]:
    """Copy an upper directory. Returns what overlayfs has noted in it."""
    records: dict[str, list[str]] = {"whiteouts": [], "opaque": [], "copied_up": []}

    def is_wanted(entry: TreeEntry) -> bool:
        status = os.lstat(entry.source)
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            records["whiteouts"].append(entry.name)
            return False
        if stat.S_ISDIR(status.st_mode):
            if overlay_mark(entry.source, "opaque") == b"y":
                records["opaque"].append(entry.name)
        elif overlay_mark(entry.source, "origin") is not None:
            records["copied_up"].append(entry.name)
        return True

    def copy(entry: TreeEntry) -> None:
        copy_node(entry.source, entry.target, links, os.path.join(target, entry.name))

    make_alike(source, target, copy, is_wanted=is_wanted, forced=True)
    return records


def _copied_base(base: dict[str, int | None], source: str, target: str) -> dict[str, int | None]:
    """Return the change times of copied files that were unchanged, and for all others a time that none has."""
    renewed = dict(base)
    for name, ctime in base.items():
        original, copy = stamp(os.path.join(source, name)), stamp(os.path.join(target, name))
        if ctime is not None and ctime > 0 and original is not None and copy is not None:
            renewed[name] = copy.ctime if original.ctime == ctime else 1
    return renewed


def write_report(store: str, content: dict[str, Any]) -> None:
    """Write what happened in the view, as the last file of a preview."""
    data = json.dumps(content, separators=(",", ":")).encode()
    run_files.write_whole(os.path.join(store, "report.json"), data)


def bwrap_arguments(
    store: str, layers: Sequence[Layer], hide: Sequence[str], terminal: str | None, *, network: bool
) -> Iterator[str]:
    """Yield the arguments with which bwrap mounts the view that `build` mounts."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--as-pid-1")
    if not network:
        yield "--unshare-net"
    covered = [layer["path"] for layer in layers]
    # The layers of an overlay may not lie in each other, so none is made of what holds the store.
    for place in places_made_anew({*mount_points(), store}, (*covered, store), store):
        yield from _shown_by_bwrap(store, place)
    yield from (each for path in covered for each in ("--dir", path))
    yield from ("--ro-bind", "/sys", "/sys", "--dev", "/dev", "--proc", "/proc")
    yield from (each for name in _device_directories() for each in ("--dir", f"/dev/{name}"))
    if terminal is not None:
        yield from ("--dev-bind", terminal, TERMINAL)
    for layer in layers:
        if layer["kind"] == "split":
            yield from ("--bind", layer["upper"], layer["path"])
        else:
            yield from ("--overlay-src", layer["path"], "--overlay", layer["upper"], layer["work"], layer["path"])
    for layer in layers:
        for name in (name for name, ctime in layer["base"].items() if ctime == -1):
            yield from ("--ro-bind", *[os.path.join(layer["path"], name)] * 2)
    for path in (*hide, store):
        if os.path.isdir(path):
            yield from ("--perms", "0000", "--tmpfs", path)
        elif os.path.lexists(path) and not os.path.islink(path):
            yield from ("--ro-bind", os.path.join(store, "closed"), path)


def _shown_by_bwrap(store: str, place: ShownPlace) -> Iterator[str]:
    if place.kind == "link":
        with suppress(OSError):
            yield from ("--symlink", os.readlink(place.path), place.path)
    elif place.kind == "file":
        yield from ("--ro-bind-try", place.path, place.path)
    elif place.kind == "overlay":
        yield from ("--overlay-src", os.path.join(store, "empty"), "--overlay-src", place.path)
        yield from ("--ro-overlay", place.path)
    elif place.kind == "directory":
        yield from ("--perms", f"{place.mode:04o}", "--dir", place.path)
