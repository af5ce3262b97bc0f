"""Run a function on an overlay of a real directory, as previews do, and leave its upper directory in a store."""

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.changes.trees import described
from whisper_tui.changes.file_trees import attributes, dress, remove_tree, stamp
from whisper_tui.system import syscalls

NEWNS, NEWUSER = 0x20000, 0x10000000
PRIVATE_ALL = 16384 | (1 << 18)

Described = dict[str, tuple[object, ...]]
T = TypeVar("T")


def make_store(store: Path, top: Path) -> None:
    """Make the store of a preview of one directory."""
    store.mkdir(mode=0o700)
    for name in ("0u", "0w"):
        (store / name).mkdir()
    present = stamp(str(top))
    assert present is not None
    dress(str(store / "0u"), present, attributes(str(top)))
    layer = {"path": str(top), "upper": f"{store}/0u", "work": f"{store}/0w", "kind": "overlay", "base": {}}
    began = tick(store)
    (store / "layers.json").write_text(
        json.dumps({"layers": [layer], "began_ns": began, "marks": marks(), "memory": False})
    )


def marks() -> str:
    return "trusted" if os.getuid() == 0 else "user"


def tick(directory: Path) -> int:
    """Return a time of this file system that is later than all changes before and earlier than all after."""
    path = directory / "now"
    path.touch()
    began = path.stat().st_ctime_ns
    for _ in range(10_000_000):
        path.chmod(0o600)
        if path.stat().st_ctime_ns > began:
            break
    path.unlink()
    return began


def previewed(store: Path, top: Path, work: Callable[[], None]) -> Described:
    """Do the work in the directory, on an overlay of it. Return how the directory looked there at the end."""
    make_store(store, top)
    return on_overlay(top, store / "0u", store / "0w", work)


def on_overlay(top: Path, upper: Path, workdir: Path, work: Callable[[], None]) -> Described:
    """Do the work on an overlay in these directories. Return how the directory looked there at the end."""

    def see() -> Described:
        _mount(top, upper, workdir)
        in_child(lambda: _without_capabilities(top, work))
        return described(top)

    found = in_child(see)
    remove_tree(str(workdir / "work"))
    return found


def seen_by_owner(top: Path, *, inodes: bool = False) -> Described:
    """Describe a tree, also files that its owner has made unreadable."""
    if os.getuid() == 0:
        return described(top, inodes=inodes)

    def see() -> Described:
        _enter_namespaces()
        return described(top, inodes=inodes)

    return in_child(see)


def in_child(work: Callable[[], T]) -> T:
    """Return what a function returns in a process of its own."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with os.fdopen(writing, "wb") as file:
                pickle.dump(work(), file)
            code = 0
        except BaseException:  # noqa: BLE001 - the child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    found: T = pickle.loads(data)
    return found


def _without_capabilities(top: Path, work: Callable[[], None]) -> None:
    """Do the work as a program does that an ordinary user starts: the namespace alone gives all capabilities."""
    if os.getuid():
        syscalls.drop_capabilities()
    os.chdir(top)
    work()


def _enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    syscalls.call("unshare", NEWNS | (NEWUSER if uid else 0))
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text)


def _mount(top: Path, upper: Path, workdir: Path) -> None:
    _enter_namespaces()
    syscalls.call("mount", None, b"/", None, PRIVATE_ALL, None)
    options = f"lowerdir={top},upperdir={upper},workdir={workdir},volatile,"
    options += "userxattr" if os.getuid() else "index=on,redirect_dir=off"
    syscalls.call("mount", b"overlay", os.fsencode(top), b"overlay", 0, options.encode())
