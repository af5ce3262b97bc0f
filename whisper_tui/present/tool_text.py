"""Calls that an agent carries out itself, as text: edits of files, the web, tools of other servers, sub-agents."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import Line, Paragraph, Span, said

if TYPE_CHECKING:
    from whisper_tui.model.verdict import Verdict

MINUS = "\u2212"
VERBS = {"creates": "create", "changes": "edit", "deletes": "delete", "moves": "move"}
MOST_NAMED = 8
"""Files that a row names; a row has seldom room for more."""
LONGEST_ARGUMENT, MOST_ARGUMENTS = 60, 12
"""Characters of an argument, and arguments, in a row."""
DEEPEST, MOST_ROWS = 12, 800
"""Levels of nested arguments, and rows, that the tree shows one by one."""
_PROMPTS = ("prompt", "task", "instructions", "message", "objective", "query", "description")
"""Arguments with what a sub-agent is told, the likeliest first."""


class ChangedFile(NamedTuple):
    """A file that an edit changes, as a row names it."""

    action: str
    """As in `EditAction`."""
    path: str
    moved_from: str = ""
    added: int | None = None
    """Lines that are added. None: not known."""
    removed: int | None = None


def short_path(path: str, root: str) -> str:
    """Return a path relative to the workspace, or absolute with ~ for the home directory."""
    # A path with `..` in it stays as it is: it may lead out of the directory with which it begins.
    if ".." in path.split("/"):
        return path
    if root and path.startswith(f"{root.rstrip('/')}/"):
        return path[len(root.rstrip("/")) + 1 :]
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111  pathlib loads longer than the listing takes
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path


def edit_line(files: Sequence[ChangedFile], root: str) -> Line:
    """Return an edit on one line: the verb, the file or the number of files, and the lines added and removed."""
    verbs = {VERBS.get(file.action, "edit") for file in files}
    verb = verbs.pop() if len(verbs) == 1 else "edit"
    counts = _counts(files)
    if len(files) != 1:
        named = [short_path(file.path, root) for file in files[:MOST_NAMED]]
        more = ", …" if len(files) > MOST_NAMED else ""
        names = (Span(": ", "muted"), *said(f"{', '.join(named)}{more}")) if named else ()
        return (Span(f"{verb} ", "muted"), Span(count(len(files), "file"), "strong"), *counts, *names)
    only = files[0]
    name = said(short_path(only.path, root))
    if only.moved_from:
        name = (*said(short_path(only.moved_from, root)), Span(" → ", "muted"), *name)
    return (Span(f"{verb} ", "muted"), *name, *counts)


def _counts(files: Sequence[ChangedFile]) -> Line:
    added = [file.added for file in files if file.added is not None]
    removed = [file.removed for file in files if file.removed is not None]
    if not added or not (sum(added) or sum(removed)):
        return ()
    return (Span(f" +{sum(added):,}", "good"), Span(f" {MINUS}{sum(removed):,}", "bad"))


def unusual_facts(file: Mapping[str, Any], verdict: "Verdict | None" = None) -> Iterator[str]:
    """Yield what is unusual about a file that an edit changes. The fields of `EditedFile`, as far as they are known.

    `verdict`: a verdict that stands above, and whose findings about this file are not said again (decision 42).
    """
    about = f": {visible(str(file.get('real')))}"
    above = {risk.id for risk in verdict.risks if risk.sentence.endswith(about)} if verdict is not None else ()
    linked = "" if "writes-outside" in above else "reached through a symbolic link: "
    hidden, later, unread = file.get("hidden"), file.get("sensitive"), file.get("unread")
    facts = (
        ("writes-outside", file.get("inside") == "", "outside the workspace"),
        ("", file.get("through_link"), f"{linked}named {file['path']}"),
        (
            "hard-links",
            file.get("links", 1) > 1,
            f"has {file.get('links', 1):,} names (hard links) and changes under each",
        ),
        ("writes-secrets", file.get("secret"), "by its name a file with secrets"),
        ("sensitive-write", later, f"decides what runs later or who may approve: {later}"),
        ("deceptive-characters", hidden, f"its new text has a character that deceives: {hidden}"),
        ("", file.get("binary"), "no text"),
        ("unread-file", unread, f"not read: {unread}"),
        ("", file.get("problem"), f"its new content is not known: {file.get('problem')}"),
    )
    yield from (words for id_, holds, words in facts if holds and id_ not in above)


def tool_line(tool: str, about: str, targets: Sequence[str], arguments: Mapping[str, Any]) -> Line:
    """Return a tool of the agent on one line, by its kind; `about` and `targets` as in `Function`."""
    if about == "web":
        return _web_line(tool, targets, arguments)
    if about == "server" and len(targets) >= 2:
        server, name = (one_line_beginning(part, LONGEST_ARGUMENT) for part in targets[:2])
        return (*said(server, "strong"), Span(" · ", "muted"), *said(f"{name} "), *_arguments_line(arguments))
    if about == "subagent":
        name = one_line_beginning(targets[0], LONGEST_ARGUMENT) if targets else tool
        prompt = prompt_of(arguments)
        words = said(f": {one_line_beginning(prompt, 400)}") if prompt else _arguments_line(arguments)
        return (Span("start ", "muted"), *said(name, "strong"), *words)
    return (*said(f"{tool} "), *_arguments_line(arguments))


def prompt_of(arguments: Mapping[str, Any]) -> str:
    """Return what a sub-agent is told. Empty: no argument says it."""
    texts = (arguments[name] for name in _PROMPTS if isinstance(arguments.get(name), str))
    return next((text for text in texts if text.strip()), "")


def _web_line(tool: str, hosts: Sequence[str], arguments: Mapping[str, Any]) -> Line:
    if not hosts:
        query = next((arguments[name] for name in ("query", "q") if isinstance(arguments.get(name), str)), "")
        words = said(f"“{one_line_beginning(query, 200)}”") if query else _arguments_line(arguments)
        return (Span("search ", "muted"), *words) if query else (*said(f"{tool} "), *words)
    shown: list[Span] = [Span("fetch ", "muted")]
    addresses = {host: rest for host, rest in _addresses(arguments) if host in hosts}
    for number, host in enumerate(hosts[:MOST_NAMED]):
        shown += (Span(", "),) if number else ()
        shown += (*host_spans(host), *said(one_line_beginning(addresses.get(host, ""), 200), "text"))
    return (*shown, *((Span(", …"),) if len(hosts) > MOST_NAMED else ()))


def host_spans(host: str) -> Line:
    """Return a host, and its name as the network knows it if it has other letters than ASCII."""
    # Letters of other scripts can look like those of a well-known name (decision 21).
    if host.isascii():
        decoded = _decoded(host)
        other: Line = (Span(f" ({decoded})", "risk"),) if decoded != host else ()
        return (*said(host, "strong"), *other)
    return (*said(host, "strong"), Span(f" ({_encoded(host)})", "risk"))


def _encoded(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "no valid name of a host"


def _decoded(host: str) -> str:
    if "xn--" not in host:
        return host
    try:
        return one_line_beginning(host.encode("ascii").decode("idna"), LONGEST_ARGUMENT)
    except UnicodeError:
        return "no valid name of a host"


def _addresses(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the hosts of the addresses in arguments, each with the path and the query."""
    if isinstance(value, str) and "://" in value[:16] and len(value) < 20_000:
        try:
            parts = urlsplit(value)
            host = (parts.hostname or "").lower()
            port = f":{parts.port}" if parts.port is not None else ""
        except ValueError:
            return
        rest = value.partition("://")[2]
        rest = rest[len(parts.netloc) :]
        # The host may have been noted with its port or without.
        yield host, f"{port}{rest}"
        yield f"{host}{port}", rest
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for each in value.values():
            yield from _addresses(each, depth + 1)
    elif isinstance(value, list) and depth < DEEPEST:
        for each in value[:MOST_NAMED]:
            yield from _addresses(each, depth + 1)


def _arguments_line(arguments: Mapping[str, Any]) -> Line:
    shown: list[str] = []
    for name, value in list(arguments.items())[:MOST_ARGUMENTS]:
        text = value if isinstance(value, str) else _brief(value)
        shown.append(f"{one_line_beginning(name, LONGEST_ARGUMENT)}: {one_line_beginning(text, LONGEST_ARGUMENT)}")
    more = ", …" if len(arguments) > MOST_ARGUMENTS else ""
    return said(f"{{{', '.join(shown)}{more}}}", "muted")


def _brief(value: object) -> str:
    if isinstance(value, Mapping | list) and value:
        return "{…}" if isinstance(value, Mapping) else "[…]"
    return json.dumps(value, ensure_ascii=False)


def tool_paragraphs(about: str, targets: Sequence[str], arguments: Mapping[str, Any]) -> tuple[Paragraph, ...]:
    """Return a tool's hosts, server or sub-agent on rows of their own, and its arguments as a tree, completely."""
    return (*_target_rows(about, targets), *_tree(arguments))


def _target_rows(about: str, targets: Sequence[str]) -> Iterator[Paragraph]:
    if about == "web":
        for host in targets:
            yield _row((Span("Host    ", "label"), *host_spans(host)))
        if not targets:
            yield _row((Span("Host    ", "label"), Span("not known: the tool chooses it", "risk")))
    elif about == "server" and len(targets) >= 2:
        yield _row((Span("Server  ", "label"), *said(targets[0], "strong")))
        yield _row((Span("Tool    ", "label"), *said(targets[1], "strong")))
    elif about == "subagent" and targets:
        yield _row((Span("Agent   ", "label"), *said(targets[0], "strong")))


def _tree(arguments: Mapping[str, Any]) -> tuple[Paragraph, ...]:
    rows = [_row(line, depth) for depth, line in _branches(arguments, 0)]
    return tuple(rows) or (_row((Span("no arguments", "muted"),)),)


def is_tree(arguments: Mapping[str, Any]) -> bool:
    """True if the tree of the arguments has few enough rows and levels to be shown."""
    return sum(1 for _, _ in zip(range(MOST_ROWS + 1), _branches(arguments, 0), strict=False)) <= MOST_ROWS


def _branches(value: Mapping[str, Any] | list[Any], depth: int) -> Iterator[tuple[int, Line]]:
    pairs: Iterable[tuple[str, Any]] = (
        value.items() if isinstance(value, Mapping) else ((f"{at}", each) for at, each in enumerate(value, 1))
    )
    for name, each in pairs:
        label: Line = (*said(name, "label", whole=True), Span("  "))
        if isinstance(each, Mapping | list) and each and depth < DEEPEST:
            yield depth, label
            yield from _branches(each, depth + 1)
        elif isinstance(each, str) and "\n" in each:
            yield depth, label
            for line in each.split("\n"):
                yield depth + 1, (Span("│ ", "frame"), *_text(line))
        else:
            shown = _text(each) if isinstance(each, str) else said(json.dumps(each, ensure_ascii=False), whole=True)
            yield depth, (*label, *(shown or (Span("empty", "muted"),)))


def _text(text: str) -> Line:
    return said(text.replace("\t", "    "), "command", whole=True)


def _row(spans: Line, depth: int = 0) -> Paragraph:
    margin = (Span(" "), Span("│ ", "frame"), Span("  " * depth))
    hanging = (Span(" "), Span("┆ ", "frame"), Span("  " * (depth + 1)))
    return Paragraph(spans, margin, hanging, card=True, at_words=False)
