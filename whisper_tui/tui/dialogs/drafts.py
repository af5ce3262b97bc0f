"""Drafts of an edited command, of the scope of an approval and of a rule: typed fields, parsed and checked."""

import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from whisper_tui.model.call import Argv, CarriedOut, Command, CommandSpec, FileEdits, Function, Shell, WriteFile
from whisper_tui.model.decision import ExactScope, PrefixScope, RuleScope, Scope, scope_about
from whisper_tui.model.shown_rules import RuleDraft, RuleEffect
from whisper_tui.model.text import PLAIN_CONTROLS, is_hidden, without_hidden


@dataclass(frozen=True)
class Draft:
    """The fields of the edit screen as they are typed."""

    program: str
    """Empty for anything but an argv."""
    text: str
    """The arguments in shell quoting, one per line, or the shell text, or the arguments of a tool as JSON."""
    cwd: str
    timeout: str
    """Seconds; empty for none."""
    args: tuple[str, ...] | None = None
    """The arguments exactly as they are. None: they stand in `text`."""
    place: str | None = None
    """Where it runs; empty for this machine. None: as it was asked for."""
    file: int = 0
    """The position, among the changes of an edit, of the file whose content stands in `text`."""


@dataclass(frozen=True)
class Checked:
    """The result of checking a draft; `spec` is None while there are problems."""

    spec: CommandSpec | None
    problems: tuple[str, ...]


def draft_of(spec: CommandSpec, file: int = 0) -> Draft:
    """Return a specification as fields, without invisible characters; `file` as in `Draft`."""
    timeout = f"{spec.timeout_s:g}" if spec.timeout_s is not None else ""
    command = spec.command
    # Nobody can edit around a character that has no width; the dialog says how many were left out.
    if isinstance(command, Argv):
        text = "\n".join(shlex.quote(seen(word)) for word in command.args)
        return Draft(seen(command.program), text, seen(spec.cwd), timeout)
    if isinstance(command, Function):
        return Draft("", seen(json.dumps(command.arguments, ensure_ascii=False, indent=2)), seen(spec.cwd), timeout)
    if isinstance(command, FileEdits):
        change = command.changes[file]
        content = seen(change.content) if isinstance(change, WriteFile) else ""
        return Draft("", content, seen(spec.cwd), timeout, file=file)
    return Draft("", seen(command.text), seen(spec.cwd), timeout)


def seen(text: str) -> str:
    """Return the text without invisible characters."""
    return without_hidden(text, keep=PLAIN_CONTROLS)


def hidden_count(spec: CommandSpec, file: int = 0) -> int:
    """Return the number of invisible characters in the command and the directory; `file` as in `Draft`."""
    command = spec.command
    changes = command.changes[file : file + 1] if isinstance(command, FileEdits) else ()
    contents = [change.content for change in changes if isinstance(change, WriteFile)]
    text = "".join((*command.words(), *contents, spec.cwd))
    return len(text) - len(seen(text))


def checked(draft: Draft, asked: CommandSpec) -> Checked:
    """Parse a draft. Returns its specification, or its problems as sentences."""
    problems: list[str] = []
    command = _command(draft, asked.command, problems)
    if not draft.cwd.startswith("/"):
        problems.append("The directory must be an absolute path.")
    timeout = _timeout(draft.timeout, problems)
    texts = [("program", draft.program), ("directory", draft.cwd)]
    # A character that was left out of the fields must not come back by paste: the dialog could not show it.
    texts += [("command", draft.text)] if draft.args is None else [("command", text) for text in draft.args]
    for name, text in texts:
        problems += unseen_problems(name, text)
    if command is None or problems:
        return Checked(None, tuple(problems))
    changed = {"command": command, "cwd": draft.cwd, "timeout_s": timeout}
    if draft.place is not None:
        changed["place"] = draft.place
    return Checked(asked.model_copy(update=changed), ())


def unseen_problems(name: str, text: str) -> list[str]:
    """Return a sentence about an invisible character in a field."""
    found = next((character for character in text if character not in PLAIN_CONTROLS and is_hidden(character)), None)
    return [f"The {name} contains an invisible character (U+{ord(found):04X})."] if found else []


def _command(draft: Draft, asked: Command, problems: list[str]) -> Command | None:
    if isinstance(asked, Shell):
        if not draft.text.strip():
            problems.append("There is no command.")
            return None
        return asked.model_copy(update={"text": draft.text})
    if isinstance(asked, Function):
        return _function(draft.text, asked, problems)
    if isinstance(asked, FileEdits):
        return _edited_file(draft, asked, problems)
    if not draft.program.strip():
        problems.append("There is no program.")
    if draft.args is not None:
        # With one field per argument, quotes and blanks are part of the argument.
        return Argv(program=draft.program, args=draft.args)
    try:
        args = tuple(shlex.split(draft.text))
    except ValueError:
        problems.append("The arguments contain an unclosed quote or end with a backslash.")
        return None
    return Argv(program=draft.program, args=args)


def _edited_file(draft: Draft, asked: FileEdits, problems: list[str]) -> FileEdits | None:
    """Return the edit that leaves this content in one of its files, and in the others what was asked for."""
    change = asked.changes[draft.file]
    if not isinstance(change, WriteFile):
        problems.append("This file has no content to edit; approve the edit, or deny it and say what to do.")
        return None
    text = draft.text
    # The field knows one kind of line end, and files of Windows keep theirs.
    if "\r\n" in change.content:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    if text == change.content:
        return asked
    changed = change.model_copy(update={"content": text})
    return asked.model_copy(
        update={"changes": (*asked.changes[: draft.file], changed, *asked.changes[draft.file + 1 :])}
    )


def _function(text: str, asked: Function, problems: list[str]) -> Function | None:
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        problems.append("The arguments must be a JSON object.")
        return None
    return asked.model_copy(update={"arguments": arguments})


def _timeout(text: str, problems: list[str]) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = float(text)
    except ValueError:
        # NaN fails every comparison, so that "nan" as typed text ends in the same message.
        seconds = math.nan
    if not 0 < seconds < math.inf:
        problems.append("The timeout must be a number of seconds above 0, or empty for none.")
        return None
    return seconds


Reach = Literal["exact", "here", "session", "project", "user"]
REACH_WORDS: dict[Reach, str] = {
    "exact": "Exactly this command, in this directory",
    "here": "Commands starting with these words, below this directory",
    "session": "Commands starting with these words, in any directory",
    "project": "A saved rule for these words, in this workspace",
    "user": "A saved rule for these words, everywhere",
}
"""The reaches in words, the narrowest first. The first three end with the session."""
_TOOL_REACHES: tuple[Reach, ...] = ("exact", "session", "project", "user")
_THIS = {"edits": "edit of a file", "web": "fetch", "tool": "call"}
_TARGETS = {"edits": "edits of these files", "web": "fetches from these hosts", "tool": "calls of this tool"}
TARGET_LABELS = {
    "edits": "Files, as in .gitignore",
    "web": "Hosts",
    "tool": "Tool",
    "command": "First words of the command",
}
"""The labels of the field for what an approval is about, by the kind of the call."""


def target_kind(command: Command) -> str:
    """Return the kind of target that an approval of a call names."""
    if not isinstance(command, CarriedOut):
        return "command"
    if isinstance(command, FileEdits):
        return "edits"
    return "web" if command.about == "web" else "tool"


def reach_words(command: Command) -> dict[Reach, str]:
    """Return the reaches that a call can be approved for, in words, the narrowest first."""
    if not isinstance(command, CarriedOut):
        return REACH_WORDS
    kind = target_kind(command)
    targets = _TARGETS[kind]
    words = (
        f"Exactly this {_THIS[kind]}, in this session",
        f"{targets.capitalize()}, in this session",
        f"A saved rule for {targets}, in this workspace",
        f"A saved rule for {targets}, everywhere",
    )
    return dict(zip(_TOOL_REACHES, words, strict=True))


@dataclass(frozen=True)
class ScopeDraft:
    """The fields of the scope dialog as they are typed."""

    reach: Reach
    words: str = ""
    """The prefix, in shell quoting; of a call that its agent carries out, the target as rules write it."""
    uses: str = ""
    """The number of later calls; empty for any number."""
    minutes: str = ""
    """Empty for no expiry, or for the lifetime of the session."""

    @property
    def has_words(self) -> bool:
        """True if the reach needs a prefix."""
        return self.reach != "exact"

    @property
    def has_uses(self) -> bool:
        """True if the reach can limit its uses, which saved rules cannot."""
        return self.reach in {"exact", "here", "session"}


def scope_of(draft: ScopeDraft, spec: CommandSpec, problems: list[str]) -> Scope | None:
    """Return the scope of a draft for a command. None if it has problems, which are appended as sentences."""
    before = len(problems)
    if isinstance(spec.command, CarriedOut) and draft.has_words:
        return _tool_scope_of(draft, spec.command, problems)
    words = _words(draft.words, problems) if draft.has_words else ()
    uses = _uses(draft.uses, problems) if draft.has_uses else None
    minutes = _minutes(draft.minutes, problems)
    if len(problems) > before:
        return None
    match draft.reach:
        case "exact":
            return ExactScope(uses=uses, minutes=minutes)
        case "here":
            return PrefixScope(words=words, directory=spec.cwd, uses=uses, minutes=minutes)
        case "session":
            return PrefixScope(words=words, uses=uses, minutes=minutes)
        case "project" | "user":
            return RuleScope(words=words, where=draft.reach, minutes=minutes)


def _tool_scope_of(draft: ScopeDraft, command: CarriedOut, problems: list[str]) -> Scope | None:
    before = len(problems)
    target = draft.words.strip()
    problems += unseen_problems("text", target)
    if not target:
        problems.append(
            {"edits": "Type a pattern of files.", "web": "Type a host."}.get(
                target_kind(command), "Type the name of the tool."
            )
        )
    uses = _uses(draft.uses, problems) if draft.has_uses else None
    minutes = _minutes(draft.minutes, problems)
    if len(problems) > before:
        return None
    where = draft.reach if draft.reach in {"project", "user"} else "session"
    return scope_about(command, target, where, uses=uses, minutes=minutes)


def _words(text: str, problems: list[str]) -> tuple[str, ...]:
    problems += unseen_problems("prefix", text)
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        problems.append("The prefix contains an unclosed quote or ends with a backslash.")
        return ()
    if not words:
        problems.append("Type the first words of the commands.")
    return words


def _uses(text: str, problems: list[str]) -> int | None:
    if not text.strip():
        return None
    # int() alone would also take "1_000" and "+5".
    if not text.strip().isdecimal() or not 0 < int(text) < 1_000_000:
        problems.append("Times must be a whole number above 0, or empty for any number.")
        return None
    return int(text)


def _minutes(text: str, problems: list[str]) -> float | None:
    if not text.strip():
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < 10_000_000:
        problems.append("Minutes must be a number above 0, or empty for no expiry.")
        return None
    return minutes


EFFECTS: tuple[tuple[RuleEffect, str], ...] = (
    ("allow", "allow: runs without asking"),
    ("ask", "ask: whatever else would allow it"),
    ("deny", "deny: never runs"),
)
KINDS = (
    ("prefix", "that begin with these words"),
    ("text", "of exactly this text"),
    ("program", "of this program"),
    ("pattern", "that match this pattern"),
    ("anything", "of any kind"),
    ("path", "none: edits of these files"),
    ("host", "none: fetches from this host"),
    ("argv", "of exactly these words, without a shell"),
)
"""The fields that say which commands a rule is about, or which files or host."""
SANDBOXES = (
    ("", "as the file says, or read-only"),
    ("read-only", "read-only"),
    ("read-only network", "read-only, with network"),
    ("workspace", "writes only inside the workspace"),
    ("workspace network", "workspace, with network"),
    ("none", "none: it runs with your permissions"),
    (" network", "as the file says, with network"),
)
RUN_AT = "run_at "
"""Before the name of a place in the fields of the form: the commands run there, wherever they are asked for."""
NO_OPTIONS = "-"
"""Written as the options of a rule after whose words none may follow."""
ONLY_ALLOW = ("options", "redirections", "sandbox", "network", "execute")
"""Fields that mean something for a rule that allows only."""
_IN_FORM = frozenset(
    {"name", "disabled", "directory", "tool", "place", "run_at", "justification"}
    | {"options", "redirections", "sandbox", "network"}
    | {kind for kind, _ in KINDS}
)
_OPERATORS = frozenset({"&&", "||", "|", ";", "&"})


@dataclass(frozen=True)
class RuleFields:
    """The fields of the form as they are typed."""

    effect: RuleEffect = "allow"
    kind: str = "prefix"
    words: str = ""
    """The words in shell quoting, or the text, program or pattern."""
    options: str = ""
    """In shell quoting; empty for any that is not dangerous, `-` for none."""
    redirections: str = "no"
    directory: str = ""
    tool: str = ""
    place: str = ""
    """`here`, `*` for every place, the name of a place, or one with `RUN_AT` before it. Empty: not said."""
    sandbox: str = ""
    because: str = ""
    name: str = ""
    disabled: str = "no"

    def definition(self, problems: dict[str, str]) -> dict[str, Any]:
        """Return the fields of the rule; what is wrong is put into `problems` as a sentence for each field."""
        made: dict[str, Any] = {self.kind: self._subject(problems)}
        made["name"] = self.name.strip() or (self.words.strip() if self.kind != "anything" else "anything")
        for key, value in (("directory", self.directory), ("tool", self.tool), ("justification", self.because)):
            if value.strip():
                made[key] = value.strip()
            if unseen := unseen_problems(key, value):
                problems[key] = unseen[0]
        if self.place:
            made["run_at" if self.place.startswith(RUN_AT) else "place"] = self.place.removeprefix(RUN_AT)
        if self.disabled == "yes":
            made["disabled"] = True
        if self.effect == "allow":
            made |= self._permission(problems)
        return made

    def _subject(self, problems: dict[str, str]) -> Any:
        if self.kind == "anything":
            return True
        if unseen := unseen_problems("text", self.words):
            problems["words"] = unseen[0]
        if not self.words.strip():
            nouns = {"path": "a pattern of the files", "host": "the host"}
            problems["words"] = f"Type {nouns.get(self.kind, 'the commands')} that the rule is about."
        if self.kind not in {"prefix", "argv"}:
            return self.words if self.kind == "text" else self.words.strip()
        words = _split(self.words, "words", problems)
        if operator := next((word for word in words if word in _OPERATORS), None):
            problems["words"] = (
                f"A rule is about single commands, so {operator!r} never matches; choose exactly this text."
            )
        return words

    def _permission(self, problems: dict[str, str]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.kind == "prefix" and self.options.strip():
            made["options"] = [] if self.options.strip() == NO_OPTIONS else _split(self.options, "options", problems)
        if self.redirections == "yes":
            made["redirections"] = True
        kind, network = self.sandbox.partition(" ")[::2]
        if kind:
            made["sandbox"] = False if kind == "none" else kind
        if network:
            made["network"] = True
        return made


def _split(text: str, field: str, problems: dict[str, str]) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        problems[field] = "There is an unclosed quote, or a backslash at the end."
        return []


def fields_of(draft: RuleDraft) -> RuleFields:
    """Return a rule as the fields of the form."""
    rule = {key: value for key, value in draft.definition.items() if value not in (None, False)}
    kind = next((kind for kind, _ in KINDS if kind in rule), "prefix")
    value = rule.get(kind, "")
    options = rule.get("options")
    sandbox = "none" if draft.definition.get("sandbox") is False else rule.get("sandbox", "")
    return RuleFields(
        effect=draft.effect,
        kind=kind,
        words=shlex.join(value) if isinstance(value, list | tuple) else value if isinstance(value, str) else "",
        options="" if options is None else shlex.join(options) or NO_OPTIONS,
        redirections="yes" if rule.get("redirections") else "no",
        directory=rule.get("directory", ""),
        tool=rule.get("tool", ""),
        place=f"{RUN_AT}{rule['run_at']}" if rule.get("run_at") else rule.get("place", ""),
        sandbox=f"{sandbox} network" if rule.get("network") and sandbox != "none" else sandbox,
        because=rule.get("justification", ""),
        name=rule["name"] if rule.get("name") else "",
        disabled="yes" if rule.get("disabled") else "no",
    )


def place_choices(places: Iterable[str], chosen: str) -> tuple[tuple[str, str], ...]:
    """Return the places that a rule can name, with the words for each. Empty: there is none but this machine."""
    names = dict.fromkeys((*places, *([chosen.removeprefix(RUN_AT)] if chosen not in {"", "here", "*"} else ())))
    if not names and not chosen:
        return ()
    choices = [("", "allows here; asks and denies anywhere"), ("here", "only on this machine"), ("*", "anywhere")]
    for name in names:
        choices += [(name, f"only at {name}"), (f"{RUN_AT}{name}", f"run them at {name}")]
    return tuple(choices)


def kept_of(draft: RuleDraft) -> dict[str, Any]:
    """Return the fields of a rule that the form does not show, and keeps."""
    return {
        key: value for key, value in draft.definition.items() if key not in _IN_FORM and value not in (None, [], ())
    }
