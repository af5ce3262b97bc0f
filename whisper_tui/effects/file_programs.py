"""Programs that change files: each takes its operands apart and records what it would change.

A program that is not in the table here, nor known to only read, is recorded as unknown by the caller.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whisper_tui.effects.changes import Changes
from whisper_tui.effects.file_view import Found
from whisper_tui.effects.operands import ParsedWords, Program, find_targets, input_of
from whisper_tui.effects.text_edits import EDITORS, SED
from whisper_tui.effects.text_walk import MOST_NAMES, Step
from whisper_tui.effects.transfer_programs import TRANSFERS
from whisper_tui.system import host_files
from whisper_tui.system.host_files import Tree


def _rm(step: Step, args: ParsedWords, changes: Changes) -> None:
    changes.marks.add("deletes")
    trees = args.has("r", "R", "recursive")
    removed = []
    for found in find_targets(step, args.operands, changes, follow=False):
        empty = args.has("d", "dir") and changes.view.names_in(found.real, MOST_NAMES) == []
        if found.kind != "directory" or trees or empty:
            removed.append(found)
    changes.remove(step, removed)


def _rmdir(step: Step, args: ParsedWords, changes: Changes) -> None:
    for found in find_targets(step, args.operands, changes, follow=False):
        names = changes.view.names_in(found.real, MOST_NAMES) if found.kind == "directory" else None
        if names == []:
            changes.change(step, found, "removes directory")
            changes.view.note(found.real, "absent")
        elif names and all(
            each.made for each in find_targets(step, [f"{found.real}/{name}" for name in names], changes)
        ):
            changes.unknown(step, "files", f"{found.path} is empty if the commands before made nothing in it")
    if args.has("p", "parents"):
        changes.unknown(step, "files", "empty parent directories are removed as well")


def _mkdir(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("p", "parents"):
        _note_ways_up(step, args.operands, changes)
    for found in find_targets(step, args.operands, changes):
        if args.has("p", "parents"):
            make_parents(step, found.real, changes)
        if found.kind == "absent":
            changes.make_directory(step, found)


def _note_ways_up(step: Step, operands: Iterable[str | None], changes: Changes) -> None:
    """Note that directories on the way are made as well, as they are written: `x/../a` makes x."""
    for word in operands:
        if word is not None and ".." in word.split("/")[1:]:
            changes.unknown(step, "files", f"the directories on the way of {word} are made as well")


def make_parents(step: Step, real: str, changes: Changes) -> None:
    """Record the missing directories above a path."""
    missing = []
    parent = os.path.dirname(real)
    while parent != "/" and (found := changes.view.find(parent, None)) is not None and found.kind == "absent":
        missing.append(found)
        parent = os.path.dirname(parent)
    for found in reversed(missing):
        changes.make_directory(step, found)


def _touch(step: Step, args: ParsedWords, changes: Changes) -> None:
    for found in find_targets(step, args.operands, changes):
        if found.kind != "absent":
            changes.change(step, found, "touches")
        elif not args.has("c", "no-create", "h", "no-dereference"):
            changes.write(step, found, b"")


def _truncate(step: Step, args: ParsedWords, changes: Changes) -> None:
    size = args.value("s", "size")
    for found in find_targets(step, args.operands, changes):
        if found.kind == "absent" and args.has("c", "no-create"):
            continue
        content = None
        if size == "0":
            content = b""
        changes.write(step, found, content, why="only its size is set", detail=f"to size {size}" if size else "")


def _destination(step: Step, args: ParsedWords, changes: Changes) -> tuple[list[str | None], Found | None, bool]:
    """The sources of cp, mv and their like, the target, and whether the sources go into it."""
    into = args.value("t", "target-directory") if args.has("t", "target-directory") else None
    if args.has("t", "target-directory"):
        return args.operands, changes.find(step, into), True
    if len(args.operands) < 2:
        return [], None, False
    target = changes.find(step, args.operands[-1])
    if target is None:
        return [], None, False
    inside = target.kind == "directory" and not args.has("T", "no-target-directory")
    return args.operands[:-1], target, inside


def _inside(changes: Changes, step: Step, target: Found, source: str, *, follow: bool = True) -> Found | None:
    name = os.path.basename(source.rstrip("/")) or source
    return changes.find(step, os.path.join(target.path, name), follow=follow)


def _cp(step: Step, args: ParsedWords, changes: Changes) -> None:
    sources, target, inside = _destination(step, args, changes)
    if target is None:
        return
    _backups(step, args, changes)
    for source in sources:
        origin = changes.find(step, source, follow=_follows_links(args) or (source or "").endswith("/"))
        if origin is None:
            continue
        if args.has("parents"):
            # The directories are made before a file is missed.
            _copy_with_parents(step, args, changes, origin, _Goal(target, source or "", inside))
        elif origin.kind == "absent":
            continue
        elif origin.kind == "directory":
            if args.has("r", "R", "recursive", "a", "archive"):
                _copy_tree(step, args, changes, origin, _Goal(target, source or "", inside))
        else:
            _copy_file(step, args, changes, origin, _Goal(target, source or "", inside))


def _follows_links(args: ParsedWords) -> bool:
    """True if cp follows the links that it is given: the last option about that decides."""
    kept, followed = ("a", "archive", "d", "P", "no-dereference"), ("H", "L", "dereference")
    for given, _ in reversed(args.options):
        if given in (*kept, *followed):
            return given in followed
    return args.has("l", "link") or not args.has("r", "R", "recursive")


def _backups(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("b", "backup", "S", "suffix"):
        changes.unknown(step, "files", "backups are made beside what it overwrites")


class _Goal(NamedTuple):
    """The end of one copy."""

    target: Found
    source: str
    """The origin as it is named: a target directory gets its last part."""
    inside: bool
    """True if the copy goes into the target."""


def _copy_with_parents(step: Step, args: ParsedWords, changes: Changes, origin: Found, goal: _Goal) -> None:
    # Behind `..` or a link, the copy is somewhere else than in the target.
    copy = changes.find(step, f"{goal.target.path}/{goal.source}")
    if copy is not None and not copy.real.startswith(f"{goal.target.real}/"):
        changes.unknown(step, "files", f"the directories above {goal.source} lead out of the target")
    leads_out = False
    if copy is not None and origin.kind == "directory":
        leads_out = _leads_out(args, changes, origin, changes.view.tree(origin.real, 0.05), copy.real)
    detail = f"with a copy of {origin.path} and the directories above it"
    changes.fill(step, goal.target, detail=detail, may_lead_out=leads_out)


def _copy_file(step: Step, args: ParsedWords, changes: Changes, origin: Found, goal: _Goal) -> None:
    # A link takes the place of what is there, and so does a file with --remove-destination.
    replaces = args.has("l", "link", "s", "symbolic-link", "remove-destination") or origin.is_link
    replaces = replaces or step.name == "install"
    if goal.inside:
        found = _inside(changes, step, goal.target, goal.source, follow=not replaces)
    else:
        found = changes.find(step, goal.target.path, follow=False) if replaces else goal.target
    same = found is not None and found.real == origin.real and step.name != "install"
    if found is None or same or (found.kind != "absent" and args.has("n", "no-clobber")):
        return
    if args.has("l", "link", "s", "symbolic-link"):
        changes.change(step, found, "links", detail=origin.path)
        if origin.is_link or args.has("s", "symbolic-link"):
            changes.view.note_link(found.real)
        else:
            changes.view.note(found.real, "file")
        return
    if found.kind == "directory":
        return
    content, why = changes.view.content(origin)
    only_if = ""
    if found.kind != "absent" and args.has("u", "update"):
        only_if = "the source is newer"
    elif found.kind != "absent" and args.has("i", "interactive"):
        only_if = "its question is answered with yes"
    changes.write(step, found, content, why=why, only_if=only_if, detail=f"a copy of {origin.path}")
    if origin.is_link:
        changes.view.note_link(found.real)


def _copy_tree(step: Step, args: ParsedWords, changes: Changes, origin: Found, goal: _Goal) -> None:
    # `cp -r a/. b` copies what is in a.
    whole = os.path.basename(goal.source.rstrip("/")) in {".", ".."}
    found = _inside(changes, step, goal.target, goal.source) if goal.inside and not whole else goal.target
    if found is None or found.kind not in {"absent", "directory"}:
        return
    tree = changes.view.tree(origin.real, 0.05)
    number = f"{'' if tree.complete else 'more than '}{tree.files:,} {'file' if tree.files == 1 else 'files'}"
    only_if = "the source is newer" if args.has("u", "update") else ""
    changes.fill(
        step,
        found,
        detail=f"with {number} from {origin.path}",
        only_if=only_if,
        may_lead_out=found.kind == "directory" and _leads_out(args, changes, origin, tree, found.real),
        links=bool(tree.links) or not tree.complete or origin.made or args.has("l", "link", "s", "symbolic-link"),
    )


def _leads_out(args: ParsedWords, changes: Changes, origin: Found, tree: Tree, target: str) -> bool:
    """True if the copy of a tree into a directory may be written through a link that is there."""
    # The names behind a link that is followed are not in the tree, nor are those that a command before makes.
    if origin.made or not tree.is_whole or (tree.links and args.has("H", "L", "dereference", "l", "link")):
        return changes.view.has_way_out(target)
    names = (os.path.relpath(name, origin.real) for name in tree.names)
    return changes.view.leads_out(target, names)


def _mv(step: Step, args: ParsedWords, changes: Changes) -> None:
    sources, target, inside = _destination(step, args, changes)
    if target is None:
        return
    _backups(step, args, changes)
    for source in sources:
        origin = changes.find(step, source, follow=False)
        if origin is None or origin.kind == "absent":
            continue
        named = os.path.join(target.path, os.path.basename((source or "").rstrip("/")))
        found = changes.find(step, named if inside else args.operands[-1], follow=False)
        if found is None or found.real == origin.real:
            continue
        if found.kind != "absent" and args.has("n", "no-clobber"):
            continue
        only_if = "its question is answered with yes" if found.kind != "absent" and args.has("i", "interactive") else ""
        if found.kind != "absent" and args.has("u", "update"):
            only_if = "the source is newer"
        if not _may_replace(origin, found, changes):
            continue
        if changes.view.is_directory(os.path.dirname(found.real)):
            changes.move(step, origin, found, only_if=only_if)


def _may_replace(origin: Found, found: Found, changes: Changes) -> bool:
    """True if a file or a tree may get the name of what is found: that is not in the tree, and not of another kind."""
    if f"{found.real}/".startswith(f"{origin.real}/"):
        return False
    kinds = {origin.kind, found.kind}
    if "directory" not in kinds or not kinds.isdisjoint({"absent", "unknown"}):
        return True
    return kinds == {"directory"} and not changes.view.names_in(found.real, MOST_NAMES)


def _install(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("d", "directory"):
        _note_ways_up(step, args.operands, changes)
        for found in find_targets(step, args.operands, changes):
            make_parents(step, found.real, changes)
            if found.kind == "absent":
                changes.make_directory(step, found)
            elif found.kind == "directory":
                changes.change(step, found, "changes mode of", only_if="it has another one now")
        return
    sources, target, inside = _destination(step, args, changes)
    if target is None:
        return
    _backups(step, args, changes)
    if args.has("D"):
        make_parents(step, target.real, changes)
        if inside and target.kind == "absent":
            changes.make_directory(step, target)
    for source in sources:
        origin = changes.find(step, source)
        if origin is not None and origin.kind in {"file", "special", "unknown"}:
            _copy_file(step, args, changes, origin, _Goal(target, source or "", inside))


def _ln(step: Step, args: ParsedWords, changes: Changes) -> None:
    operands = args.operands
    into = args.value("t", "target-directory")
    if into is None and len(operands) == 1:
        operands = [*operands, "."]
    _backups(step, args, changes)
    targets, last = (operands, into) if into is not None else (operands[:-1], operands[-1] if operands else None)
    if not targets:
        return
    alone = args.has("n", "no-dereference", "T", "no-target-directory")
    for target in targets:
        found = changes.find(step, last, follow=not alone)
        if found is None or target is None:
            changes.unknown(step, "files", "the target of a link is only known when it runs")
            continue
        if found.kind == "directory" and not args.has("T", "no-target-directory"):
            found = _inside(changes, step, found, target, follow=False)
        else:
            found = changes.find(step, last, follow=False)
        # Without -f nothing is replaced.
        if found is None or found.kind == "directory" or (found.kind != "absent" and not args.has("f", "force")):
            continue
        changes.change(step, found, "links", detail=target)
        # What is written to a further name of a file changes the file, as what is written through a link does.
        changes.view.note_link(found.real)


def _dd(step: Step, args: ParsedWords, changes: Changes) -> None:
    named = [word for word in args.operands if word is not None and word.startswith("of=")]
    for found in find_targets(step, [word[3:] for word in named[-1:]], changes):
        changes.write(step, found, None)
    if None in args.operands:
        changes.unknown(step, "files", "a path is only known when it runs")


def _tee(step: Step, args: ParsedWords, changes: Changes) -> None:
    content, why = input_of(step, changes.view)
    for found in find_targets(step, args.operands, changes):
        if args.has("a", "append"):
            changes.append(step, found, content, why=why)
        else:
            changes.write(step, found, content, why=why)


def _mode_change(step: Step, args: ParsedWords, changes: Changes) -> None:
    mode, words = None, args.operands
    if not args.has("reference"):
        # A mode such as `-w` looks like an option.
        words = [word for word in step.words[1:] if word is None or not _MODE_OPTION.fullmatch(word)]
        mode = words.pop(0) if words else None
    deep = args.has("R", "recursive")
    for found in find_targets(step, words, changes):
        same = mode is not None and found.mode is not None and _mode_after(found.mode, mode) == found.mode
        if found.kind == "absent" or (same and not deep):
            continue
        changes.change(step, found, "changes mode of", detail=mode or "", below=deep and found.kind == "directory")
        if found.kind == "directory":
            changes.view.note_entering(found.real, is_certain=mode is not None and _lets_enter(mode))


def _lets_enter(mode: str) -> bool:
    """True if the owner of a directory certainly has the right to enter it behind chmod, or keeps it."""
    if re.fullmatch(r"[0-7]{1,4}", mode):
        return bool(int(mode, 8) & 0o100)
    return _KEEPS_ENTERING.fullmatch(mode) is not None


_KEEPS_ENTERING = re.compile(r"(?:[ugoa]*(?:[+-][rwst]+|\+[rwxXst]+|=[rwst]*[xX][rwxXst]*)(?:,(?!\Z)|\Z))+")
_MODE_OPTION = re.compile(r"-[cfvRHLP]+|--(?!$).*|--")


def _mode_after(before: int, mode: str) -> int | None:
    """The mode that chmod sets. None: it depends on more than the mode before."""
    if re.fullmatch(r"[0-7]{1,4}", mode):
        return int(mode, 8)
    match = re.fullmatch(r"([ugoa]+)([+-])([rwx]+)", mode)
    if match is None:
        return None
    who = "ugo" if "a" in match[1] else match[1]
    bits = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in set(match[3]))
    mask = sum(bits << {"u": 6, "g": 3, "o": 0}[letter] for letter in set(who))
    return before | mask if match[2] == "+" else before & ~mask


def _owner_change(step: Step, args: ParsedWords, changes: Changes) -> None:
    operands = list(args.operands)
    owner = None if args.has("reference") else (operands.pop(0) if operands else None)
    deep = args.has("R", "recursive")
    for found in find_targets(step, operands, changes):
        if found.kind != "absent":
            below = deep and found.kind == "directory"
            only_if = "it belongs to someone else now"
            changes.change(step, found, "changes owner of", only_if=only_if, detail=owner or "", below=below)


def _find(step: Step, args: ParsedWords, changes: Changes) -> None:
    words = step.words[1:]
    tests = next((at for at, word in enumerate(words) if word is None or word.startswith(("-", "(", "!"))), len(words))
    starts: Sequence[str | None] = words[:tests] or (".",)
    rest = words[tests:]
    if any(word in {"-fprint", "-fprintf", "-fprint0", "-fls"} for word in rest):
        changes.unknown(step, "files", "it writes its list to a file")
    if "-delete" not in rest:
        return
    roots = list(find_targets(step, starts, changes, follow=False))
    if rest == ("-delete",):
        changes.remove(step, roots)
        return
    name = _only_name(rest)
    if name is None:
        changes.unknown(step, "files", "the files that its tests select are deleted, but not listed here")
        return
    changes.remove(step, list(_named(roots, name, changes)))


def _only_name(rest: Sequence[str | None]) -> tuple[str, bool] | None:
    """The pattern of `find -name PATTERN -delete`, and whether only files match. None: there are other tests."""
    words, files, pattern = list(rest), False, None
    while words:
        word = words.pop(0)
        if word == "-type" and words[:1] == ["f"]:
            words.pop(0)
            files = True
        elif word == "-name" and words and pattern is None:
            pattern = words.pop(0)
        elif word == "-delete" and not words:
            return (pattern or "*", files) if files or pattern else None
        else:
            return None
    return None


def _named(roots: Iterable[Found], test: tuple[str, bool], changes: Changes) -> Iterator[Found]:
    pattern, files = test
    for root in roots:
        tree = changes.view.tree(root.real)
        if not tree.complete:
            changes.unknown(None, "files", f"there was no time to examine all files below {root.path}")
        for name in tree.names:
            if fnmatch.fnmatchcase(os.path.basename(name), pattern):
                found = changes.view.find(name, None, follow=False)
                if found is not None and (not files or not host_files.is_link(name)):
                    yield found
        if not files:
            changes.unknown(None, "files", f"directories named {pattern} are deleted if they are empty")


def _unlink(step: Step, args: ParsedWords, changes: Changes) -> None:
    targets = list(find_targets(step, args.operands, changes, follow=False))
    if step.name == "shred":
        for found in find_targets(step, args.operands, changes):
            if found.kind == "file":
                changes.write(step, found, None, why="it is overwritten with random data")
        if not args.has("u", "remove"):
            return
    changes.remove(step, [found for found in targets if found.kind != "directory"])


def _sort(step: Step, args: ParsedWords, changes: Changes) -> None:
    for found in find_targets(step, args.all("o", "output"), changes):
        changes.write(step, found, None)
    if args.has("compress-program"):
        changes.unknown(step, "everything", "an option makes sort run another program")


def _make_nodes(step: Step, args: ParsedWords, changes: Changes) -> None:
    for found in find_targets(step, args.operands[:1] if step.name == "mknod" else args.operands, changes):
        if found.kind == "absent":
            changes.write(step, found, None, why="it is not a regular file")


def _split(step: Step, args: ParsedWords, changes: Changes) -> None:
    prefix = args.operands[1] if len(args.operands) > 1 else "x"
    for found in find_targets(step, [os.path.dirname(prefix) or "." if prefix else None], changes):
        names = changes.view.names_in(found.real, MOST_NAMES)
        begins = os.path.basename(prefix or "")
        leads_out = names is None or changes.view.leads_out(found.real, [n for n in names if n.startswith(begins)])
        changes.fill(step, found, detail=f"with files named {prefix}…", may_lead_out=leads_out)


_PROGRAMS: Mapping[str, Program] = {
    "rm": Program(_rm),
    "rmdir": Program(_rmdir),
    "unlink": Program(_unlink),
    "shred": Program(_unlink),
    "mkdir": Program(_mkdir),
    "touch": Program(_touch),
    "truncate": Program(_truncate),
    "cp": Program(_cp),
    "mv": Program(_mv),
    "install": Program(_install),
    "ln": Program(_ln),
    "link": Program(_ln),
    "dd": Program(_dd),
    "tee": Program(_tee),
    "chmod": Program(_mode_change, modes="+,-01234567=Xagorstuwx"),
    "chown": Program(_owner_change),
    "chgrp": Program(_owner_change),
    "find": Program(_find, any_option=True),
    "mkfifo": Program(_make_nodes),
    "mknod": Program(_make_nodes),
    "split": Program(_split),
    **TRANSFERS,
    **EDITORS,
}
_IN_PLACE: Mapping[str, Program] = {
    "sed": SED,
    "gsed": SED,
    "sort": Program(_sort),
}
"""Programs that write only with certain options; without them the read-only list is asked."""


def record_program(step: Step, changes: Changes) -> bool:
    """Record the changes of a program. Returns False if it is in no table here."""
    name = step.name or ""
    program = _PROGRAMS.get(name)
    if program is None and name in _IN_PLACE:
        writes = ("-i", "--in-place", "-o", "--o", "-n", "-s", "-z", "-E", "-r")
        if any(word is None or word.startswith(writes) for word in step.words[1:]):
            program = _IN_PLACE[name]
    if program is None:
        return False
    if {"--help", "--version"} & set(step.words[1:2]):
        return True
    if name == "find" and not {"-delete", "-fprint", "-fprintf", "-fprint0", "-fls"} & set(step.words):
        return False
    program.record(step, changes)
    return True
