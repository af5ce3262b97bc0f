"""Archives, compressed files, downloads and copies between machines: files that come from elsewhere."""

import os
from collections.abc import Iterable, Mapping

from whisper_tui.effects.changes import Changes
from whisper_tui.effects.operands import ParsedWords, Program, find_targets, parse_words
from whisper_tui.effects.text_walk import Step


def _tar(step: Step, args: ParsedWords, changes: Changes) -> None:
    words = list(step.words)
    if len(words) > 1 and words[1] and not words[1].startswith("-"):
        bundle = "-" + words[1].replace("f", "") + ("f" if "f" in words[1] else "")
        args = parse_words([words[0], bundle, *words[2:]], "tar")
    if args.has("to-command", "I", "use-compress-program", "checkpoint-action", "F", "info-script"):
        changes.unknown(step, "everything", "an option makes tar run another program")
    if args.has("t", "list") or args.has("O", "to-stdout"):
        return
    archive = args.value("f", "file")
    if len(args.all("C", "directory")) > 1:
        changes.unknown(step, "files", "its directories follow one another")
    if args.has("x", "extract", "get"):
        into = args.value("C", "directory") if args.has("C", "directory") else "."
        found = changes.find(step, into)
        if found is not None and found.kind == "directory":
            leads_out = changes.view.has_way_out(found.real, for_directories=True)
            changes.fill(step, found, detail=f"from {archive}" if archive else "", may_lead_out=leads_out)
        if args.has("P", "absolute-names"):
            changes.unknown(step, "files", "with -P an archive may hold files of any directory")
    elif args.has("c", "create", "r", "append", "u", "update", "A", "concatenate") and archive != "-":
        for found in find_targets(step, [archive], changes):
            changes.write(step, found, None, why="an archive is binary")
    if args.has("remove-files"):
        changes.unknown(step, "files", "the files that it archives are deleted")


def _unzip(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("l", "t", "p", "v", "Z", "c", "z") or not args.operands:
        return
    found = changes.find(step, args.value("d") if args.has("d") else ".")
    if found is None:
        return
    if found.kind == "absent":
        changes.make_directory(step, found)
    leads_out = changes.view.has_way_out(found.real, for_directories=True)
    changes.fill(step, found, detail=f"from {args.operands[0]}", may_lead_out=leads_out)


def _zip(step: Step, args: ParsedWords, changes: Changes) -> None:
    name = args.operands[0] if args.operands else None
    if name is not None and "." not in os.path.basename(name):
        name += ".zip"
    for found in find_targets(step, [name], changes):
        changes.write(step, found, None, why="an archive is binary")
    if args.has("m", "move"):
        changes.unknown(step, "files", "the files that it archives are deleted")


_ENDINGS = {"gzip": ".gz", "gunzip": ".gz", "bzip2": ".bz2", "bunzip2": ".bz2", "xz": ".xz", "unxz": ".xz"}


def _compress(step: Step, args: ParsedWords, changes: Changes) -> None:
    name = step.name or ""
    if args.has("c", "stdout", "to-stdout", "l", "list", "t", "test") or not args.operands:
        return
    if args.has("r", "recursive", "S", "suffix", "F", "format"):
        changes.unknown(step, "files", "it compresses every file below a directory, or names files in its own way")
        return
    ending = _ENDINGS[name]
    expands = name.startswith(("gun", "bun", "un")) or args.has("d", "decompress", "uncompress")
    for operand in args.operands:
        origin = changes.find(step, operand)
        if origin is None or origin.kind not in {"file", "absent"} or operand is None:
            continue
        is_packed = operand.endswith(ending)
        if expands and (not is_packed or args.has("N", "name")):
            # `a.tgz` becomes a.tar, bzip2 makes a.out of a, gzip takes a.gz if there is no a, -N the name in the file.
            changes.unknown(step, "files", f"the name of what it makes of {operand} is not certain")
            continue
        if origin.kind == "absent" or (not expands and is_packed and not (name == "gzip" and args.has("f", "force"))):
            continue
        other = operand.removesuffix(ending) if expands else operand + ending
        found = changes.find(step, other)
        if found is None or (found.kind != "absent" and not args.has("f", "force")):
            continue
        changes.write(step, found, None, why="it is compressed or expanded", detail=f"from {origin.path}")
        if not args.has("k", "keep"):
            changes.remove(step, list(find_targets(step, [operand], changes, follow=False)))


def _curl(step: Step, args: ParsedWords, changes: Changes) -> None:
    base = args.value("output-dir") or "."
    if args.has("output-dir") and args.has("create-dirs"):
        changes.unknown(step, "files", "missing directories are made")
    for name in args.all("o", "output"):
        if name != "-":
            for found in find_targets(step, [name and os.path.join(base, name)], changes):
                changes.write(step, found, None, why="it is downloaded", only_if="the server answers")
    if args.has("O", "remote-name", "remote-name-all", "J", "remote-header-name"):
        for url in args.operands:
            name = None if url is None else url.split("?")[0].rstrip("/").rpartition("/")[2]
            for found in find_targets(step, [name and os.path.join(base, name)], changes):
                changes.write(step, found, None, why="it is downloaded", only_if="the server answers")
    if args.has("J", "remote-header-name"):
        changes.unknown(step, "files", "the server may name the file")
    _curl_reports(step, args, changes)


def _curl_reports(step: Step, args: ParsedWords, changes: Changes) -> None:
    """Record what curl writes beside what it downloads."""
    # a new file of cookies takes the place of a link, or is written through it
    written = list(find_targets(step, args.all("c", "cookie-jar"), changes))
    written += list(find_targets(step, args.all("c", "cookie-jar"), changes, follow=False))
    written += find_targets(step, args.all("D", "dump-header", "trace", "trace-ascii", "stderr"), changes)
    for found in written:
        if os.path.basename(found.path) != "-":
            changes.write(step, found, None)
    if any("%output" in (value or "") for value in args.all("w", "write-out")):
        changes.unknown(step, "files", "it writes its report to a file")
    if args.has("K", "config"):
        changes.unknown(step, "everything", "more options are in a configuration file")


def _wget(step: Step, args: ParsedWords, changes: Changes) -> None:
    base = args.value("P", "directory-prefix") or "."
    written = args.has("O", "output-document")
    if written and args.value("O", "output-document") != "-":
        for found in find_targets(step, [args.value("O", "output-document")], changes):
            # wget creates the file before it asks the server.
            changes.write(step, found, None, why="it is downloaded")
    if args.has("r", "recursive", "m", "mirror", "p", "page-requisites", "i", "input-file", "x", "force-directories"):
        for found in find_targets(step, [base], changes):
            leads_out = changes.view.has_way_out(found.real)
            changes.fill(
                step, found, detail="with what it downloads", only_if="the server answers", may_lead_out=leads_out
            )
    elif not written and not args.has("spider"):
        _downloads(step, args.operands, base, changes)
    if any(word is None or word.startswith("https:") for word in args.operands):
        home = step.environment.get("HOME")
        for found in find_targets(step, [home and home + "/.wget-hsts"], changes):
            changes.write(step, found, None, why="it notes the servers", only_if="the server demands encryption")
    for found in find_targets(step, args.all("o", "output-file", "a", "append-output", "save-cookies"), changes):
        changes.write(step, found, None)


def _downloads(step: Step, urls: Iterable[str | None], base: str, changes: Changes) -> None:
    """Record the files that wget names after what it downloads."""
    for url in urls:
        name = None if url is None else (url.split("://")[-1].partition("/")[2].rpartition("/")[2] or "index.html")
        for found in find_targets(step, [name and os.path.join(base, name)], changes):
            changes.write(step, found, None, why="it is downloaded", only_if="the server answers")
            if found.kind != "absent":
                changes.unknown(step, "files", "the name of the download gets a number, as there is a file of it")


def _rsync(step: Step, args: ParsedWords, changes: Changes) -> None:
    remote = [word for word in args.operands if word is None or is_remote(word)]
    if args.has("n", "dry-run") or len(args.operands) < 2 or args.has("list-only"):
        return
    target = args.operands[-1]
    if target in remote and target is not None:
        return
    found = changes.find(step, target)
    if found is not None and found.kind != "directory":
        # It takes the place of a link that leads to no directory.
        found = changes.find(step, target, follow=False)
    if found is None:
        return
    source = args.operands[0] or "files that are only known when it runs"
    changes.fill(step, found, detail=f"with {source}", may_lead_out=False)
    if any(given.startswith("del") for given, _ in args.options):
        changes.unknown(step, "files", f"files below {found.path} that the source lacks are deleted")
    if args.has("remove-source-files"):
        changes.unknown(step, "files", "the files that it copies are deleted")


def is_remote(word: str) -> bool:
    """True if an operand of scp or rsync names a path on another machine."""
    head = word.partition("/")[0]
    return word.startswith(("rsync://", "scp://", "sftp://")) or ":" in head


def _scp(step: Step, args: ParsedWords, changes: Changes) -> None:
    target = args.operands[-1] if len(args.operands) > 1 else None
    if target is None:
        changes.unknown(step, "files", "the target is only known when it runs")
    elif not is_remote(target):
        for found in find_targets(step, [target], changes):
            if found.kind == "directory":
                leads_out = changes.view.has_way_out(found.real)
                only_if = "the other machine has it"
                changes.fill(step, found, detail="with what it copies", only_if=only_if, may_lead_out=leads_out)
            else:
                changes.write(step, found, None, why="it is copied from another machine", only_if="the machine has it")


def _mktemp(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("u", "dry-run"):
        return
    template = args.operands[0] if args.operands else None
    if args.has("t", "V") or None in args.operands:
        changes.unknown(step, "files", "the place of the file is not certain")
        return
    base = args.value("p", "tmpdir") or step.environment.get("TMPDIR") or "/tmp"  # noqa: S108
    inside = os.path.dirname(template or "") or "."
    place = inside if template and not args.has("p", "tmpdir", "t") else os.path.normpath(os.path.join(base, inside))
    for found in find_targets(step, [place], changes):
        what = "directory" if args.has("d", "directory") else "file"
        changes.fill(step, found, detail=f"with a new {what} of a random name", may_lead_out=False)


TRANSFERS: Mapping[str, Program] = {
    "tar": Program(_tar),
    "unzip": Program(_unzip),
    "zip": Program(_zip),
    **dict.fromkeys(
        _ENDINGS,
        Program(_compress),
    ),
    "mktemp": Program(_mktemp),
    "curl": Program(_curl),
    "wget": Program(_wget),
    "rsync": Program(_rsync),
    "scp": Program(_scp),
}


def transfer_words(step: Step) -> ParsedWords:
    """Take the words of a program of this table apart."""
    return parse_words(step.words, step.name or "")
