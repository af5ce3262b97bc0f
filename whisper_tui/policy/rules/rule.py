"""Rules as values: which calls are allowed, asked or denied, and for which sessions, directories and targets.

The targets are those of calls that an agent carries out itself: tools by names, files by patterns, hosts by names.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from whisper_tui.model.call import HERE, Argv, CarriedOut, Command, FileEdits, Shell, Trust, Unasked
from whisper_tui.model.run import SandboxKind
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import PreviewCondition, PreviewRule

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


Effect = Literal["deny", "ask", "allow"]

EVERYWHERE = "*"
"""Stands for every place in a rule."""

EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
"""The effects of rules, the one that beats the others first."""

UndoneBy = Literal["severe", "every", "none"]
"""The commands whose changes are kept without a rule that says so: those with a severe risk, every one, or none."""


def is_below(path: str, directory: str) -> bool:
    """True if a path is a directory or in it, as far as their texts say."""
    return (path.rstrip("/") + "/").startswith(directory.rstrip("/") + "/")


class Rule(Value):
    """A rule. Exactly one of `argv`, `text`, `prefix`, `program`, `pattern` and `anything` is its subject."""

    name: str
    """Its name, shown where it decides."""
    argv: tuple[str, ...] | None = None
    """Matches an argv call with exactly these words."""
    text: str | None = None
    """Matches a shell call with exactly this text, whatever the shell."""
    prefix: tuple[str, ...] | None = None
    """Matches each command that begins with these words."""
    program: str | None = None
    """Matches every call of this program."""
    pattern: str | None = None
    """Matches text: `*` stands for anything, `?` for one character."""
    anything: bool = False
    """Matches every command; with `tool`, every call of that tool."""
    path: str | None = None
    """Matches edits of these files, in the syntax of .gitignore from the workspace; `~/` begins at home, `//` at the
    root of the file system."""
    host: str | None = None
    """Matches fetches from this host; `*.example.org` stands for every host below example.org."""
    options: tuple[str, ...] | None = None
    """Options that may follow the prefix of an allow rule. None: all that are not dangerous."""
    redirections: bool = False
    """True if an allow rule also covers reading and writing files by `<` and `>`."""
    directory: str | None = None
    """Only in this directory and below, where an allow rule also keeps every path. None: anywhere."""
    tool: str | None = None
    """Only for calls of this tool; `*` stands for anything. `edit`, `web` and `subagent` name these kinds of tools of
    every client, `mcp__SERVER__TOOL` a tool of an MCP server. None: for all."""
    place: str | None = None
    """Only for commands that run at this place; `here` is this machine, and `*` stands for every place. None: an allow
    rule is about this machine alone, and every other rule about all places."""
    run_at: str | None = None
    """Only of a rule that asks or allows: the place where its commands run, unless their call names another."""
    trust: tuple[Trust, ...] = ()
    """Only for sessions of these levels of trust. Empty: for all."""
    until: float | None = None
    """Seconds since the epoch when it ends. None: never."""
    justification: str = ""
    """Shown to the human, and to the agent where the rule denies."""
    sandbox: SandboxKind | Literal[False] | None = None
    """The sandbox of commands that an allow rule covers; False: none. None: as the file says for all its rules."""
    network: bool = False
    """True if a sandboxed command may reach other machines."""
    execute: tuple[str, ...] = ()
    """Directories whose programs a sandboxed command may run, beside those of the system."""
    preview: PreviewRule | None = None
    """Only of an ask rule: its commands are previewed by themselves, or never. None: a human may."""
    allow_if_preview: PreviewCondition | None = None
    """Only of an ask rule: its commands are previewed by themselves, and changes within this condition are made real
    without a human."""
    undo: bool | None = None
    """Only of a rule that asks or allows: the changes of its commands are kept, so that they can be undone; False:
    they are not. None: as the configuration says."""
    match: tuple[str, ...] = ()
    """Commands that the rule must match, tried when it is read."""
    not_match: tuple[str, ...] = ()
    """Commands that the rule must not match, tried when it is read."""
    disabled: bool = False
    """True if the rule decides nothing until it is enabled again."""

    def matches(self, command: Command) -> bool:
        """True if the command is exactly this `argv` or `text`."""
        if isinstance(command, Argv):
            return self.argv is not None and self.argv == command.words()
        return isinstance(command, Shell) and self.text is not None and self.text == command.text

    def is_about_place(self, effect: Effect, place: str) -> bool:
        """True if the rule is about commands at a place. Empty: on this machine (decision 33)."""
        said = self.place or (self.run_at if effect == "allow" else None)
        if said is None:
            # What a human allows here says nothing about another machine; what is denied here is denied there, too.
            return effect != "allow" or not place
        return said in {EVERYWHERE, place or HERE}

    def subject(self) -> str:
        """Return the subject in short, for lists."""
        if self.argv is not None:
            return "= " + " ".join(self.argv)
        if self.text is not None:
            return "= " + self.text
        if self.prefix is not None:
            return " ".join(self.prefix) + " …"
        if self.program is not None:
            return self.program
        if self.path is not None or self.host is not None:
            return f"edits of {self.path}" if self.path is not None else f"fetches from {self.host}"
        if self.anything and self.tool is not None:
            return f"anything of {self.tool}"
        return self.pattern if self.pattern is not None else "anything"

    def subjects(self) -> int:
        """Return how many of the fields of the subject are set."""
        commands = (self.argv, self.text, self.prefix, self.program, self.pattern, self.anything or None)
        said = (*commands, self.path, self.host)
        return sum(field is not None for field in said)


class ExactRule(Rule):
    """A rule for one command, word for word."""


RunsUnasked = Literal["reading", "edits", "effects"]
"""Commands that only read, edits of ordinary files of the workspace, and commands that change nothing but those."""


class Rules(Value):
    """All rules in effect."""

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    read_only: bool | None = None
    """True if commands of the built-in read-only list run without being asked. None counts as False.

    The files of an instance that do not say are read as True (decision 8).
    """
    sandbox: SandboxKind | Literal[False] | None = None
    """The sandbox of allow rules that do not name one. None: read-only."""
    strict: tuple[str, ...] = ()
    """Tools whose calls are refused instead of asked if no rule allows them."""
    edits: Literal["allow", "ask"] | None = None
    """The effect on edits of ordinary files in the workspace. None counts as "ask".

    The files of an instance that do not say are read as "ask".
    """
    otherwise: Literal["ask", "allow"] = "ask"
    """The effect on literal commands that no rule matches. Only measurements set "allow"; no file can."""
    unasked: Unasked | None = None
    """How much may run without anybody being asked. None: as `read_only` and `edits` say, the older keys for it."""
    deletes: int | None = None
    """Files and directories that a command may delete without anybody being asked. None: `MOST_DELETED`."""
    effects: bool = False
    """True if commands about which nobody has said anything are held back until their effects are known."""
    asks: frozenset[RunsUnasked] = frozenset()
    """The kinds about which the rules of a project, or of a client, ask, whatever the human sets."""
    broken: str | None = None
    """Why the rules could not be read; then everything is asked. None: they could."""
    untrusted: tuple[Rule, ...] = ()
    """The rules of the user's files that would allow if a human trusted them."""

    @property
    def level(self) -> Unasked:
        """How much runs unasked by these rules, whichever keys say it."""
        return "workspace" if self.effects else "reading" if self.read_only else "nothing"

    def at(self, level: Unasked) -> "Rules":
        """Return the rules with as much running unasked as a human has set, and as projects and clients leave."""
        runs = _RUNS[level] - self.asks
        return self.model_copy(
            update={
                "unasked": level,
                "read_only": "reading" in runs,
                "edits": "allow" if "edits" in runs else "ask",
                "effects": {"effects", "reading"} <= runs,
            }
        )


UNASKED: tuple[Unasked, ...] = get_args(Unasked)
"""The levels, from the least on."""
MOST_DELETED = 100
"""Files and directories that a command may delete without anybody being asked, unless the rules say another number."""
_RUNS: dict[Unasked, frozenset[RunsUnasked]] = {
    "nothing": frozenset(),
    "reading": frozenset({"reading"}),
    "workspace": frozenset({"reading", "edits", "effects"}),
}

NO_RULES = Rules()

ONLY_ASKS: dict[str, object] = {"allow_if_preview": None, "run_at": None}
"""Taken from a rule that asks and that is not the user's own: it must neither allow nor move anything."""


def by_effect(rules: Rules) -> Iterable[tuple[Effect, Rule]]:
    """Yield every rule with its effect, in the order in which they decide."""
    for effect in EFFECTS:
        for rule in getattr(rules, effect):
            yield effect, rule


def asked_by(added: Rules) -> frozenset[RunsUnasked]:
    """Return what the rules of a project or a client ask about, by the newer key or by the older ones."""
    asks = added.asks
    if added.unasked is not None:
        asks |= _RUNS["workspace"] - _RUNS[added.unasked]
    if added.read_only is False:
        asks |= {"reading", "effects"}
    if added.edits == "ask":
        asks |= {"edits", "effects"}
    return asks


def as_asks(rules: Rules) -> Rules:
    """Return rules that only ask where they say how much runs unasked."""
    unsaid: dict[str, object] = {"unasked": None, "read_only": None, "edits": None}
    return rules.model_copy(update={**unsaid, "asks": asked_by(rules)})


def stricter(rules: Rules, added: Rules) -> Rules:
    """Return rules with the deny and ask rules of others; their allow rules do not count (decision 10)."""
    if added is NO_RULES:
        return rules
    return rules.model_copy(
        update={
            "deny": (*rules.deny, *added.deny),
            # What the user's own file says about effects, or about places, is a permission too.
            "ask": (*rules.ask, *(rule.model_copy(update=ONLY_ASKS) for rule in added.ask)),
            "read_only": False if "reading" in (asks := asked_by(added)) else rules.read_only,
            "edits": "ask" if "edits" in asks else rules.edits,
            "effects": rules.effects and not asks,
            "asks": rules.asks | asks,
            "broken": "; ".join(filter(None, (rules.broken, added.broken))) or None,
        }
    )


EDIT, WEB, SUBAGENT = "edit", "web", "subagent"
"""Names of kinds of tools in rules, for every client."""

_HOST = re.compile(r"(?:\*\.)?[^\s/*?\[\]@]+")


def tool_names(command: CarriedOut) -> tuple[str, ...]:
    """Return the names by which a rule may call the tool of a call."""
    if isinstance(command, FileEdits):
        return (command.tool, EDIT)
    if command.about == "server" and len(command.targets) == 2:
        return (command.tool, f"mcp__{command.targets[0]}__{command.targets[1]}")
    return (command.tool, *((command.about,) if command.about in {WEB, SUBAGENT} else ()))


def server_pattern(server: str) -> str:
    """Return the name by which a rule calls every tool of a server."""
    return f"mcp__{server}__*"


def path_problem(pattern: str) -> str:
    """Return why a text cannot be the pattern of a rule for files, as a clause, or an empty text."""
    if not pattern.strip() or "\0" in pattern or "\n" in pattern:
        return "needs a pattern in path"
    if pattern.startswith(("!", "#")):
        # In a .gitignore these make an exception and a comment; a rule has one pattern.
        return f"has a path that begins with {pattern[0]!r}"
    return ""


def host_problem(host: str) -> str:
    """Return why a text cannot be the host of a rule, as a clause, or an empty text."""
    return "" if _HOST.fullmatch(host) else "needs the name of a host, as in example.org or *.example.org"


def host_matches(rule_host: str, host: str, *, any_port: bool = False) -> bool:
    """True if a host is the one of a rule. `any_port`: also on a port that the rule does not name."""
    wanted, given = rule_host.lower().rstrip("."), host.lower().rstrip(".")
    if fnmatchcase(given, wanted):
        return True
    bare, colon, port = given.rpartition(":")
    return any_port and bool(colon) and port.isdecimal() and fnmatchcase(bare, wanted)


class FilePlace(NamedTuple):
    """Where a file is, for the patterns of rules. A name need not be Unicode."""

    path: str
    """As it was named."""
    real: str
    """With links resolved."""
    inside: str
    """From the workspace on. Empty: it is outside."""


EVERYTHING = "/**"
"""The pattern of all files of a workspace."""


def file_matches(pattern: str, file: FilePlace, root: str, home: str, *, wide: bool) -> bool:
    """True if a pattern matches an edited file: by where its links lead and by its name, or with `wide` by either."""
    if pattern.startswith("//"):
        return _each(pattern.lstrip("/"), "/", file, wide)
    if pattern.startswith("~/"):
        return bool(home) and _each(pattern[2:], home, file, wide)
    if pattern == EVERYTHING and file.inside:
        return True
    named = _below(file.path, root) if root and wide else ""
    return any(bool(path) and _spec(pattern).match_file(path) for path in (file.inside, named))


def _each(pattern: str, base: str, file: FilePlace, wide: bool) -> bool:
    paths = [_below(path, base) for path in dict.fromkeys((file.real, file.path))]
    found = [bool(path) and _spec("/" + pattern).match_file(path) for path in paths]
    return any(found) if wide else all(found)


def literal_pattern(path: str) -> str:
    """Return the pattern that matches just this path from the workspace on."""
    # A blank at the end would be dropped from the pattern, which then means another file.
    return "/" + re.sub(r"([\\*?\[\]!#]| (?= *\Z))", r"\\\1", path).replace("\n", "?")


def _below(path: str, directory: str) -> str:
    """Return a path from a directory on. Empty: it is not below that directory."""
    above = directory.rstrip("/") + "/"
    return path[len(above) :] if path.startswith(above) else ""


@lru_cache(maxsize=512)
def _spec(pattern: str) -> "GitIgnoreSpec":
    # Only rules for files need the library, which takes longer to load than most of the policy.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
