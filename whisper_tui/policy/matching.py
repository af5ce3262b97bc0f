"""Whether a rule is about a command: widely where it denies or asks, narrowly where it allows."""

import fnmatch
import re
from collections.abc import Sequence

from whisper_tui.model.command import Command
from whisper_tui.policy.dangers.finding import Danger, letters, operands
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.question import Question
from whisper_tui.policy.reading.plain import PlainCommand
from whisper_tui.policy.rules import Rule
from whisper_tui.policy.view import View
from whisper_tui.policy.wrappers.git_aliases import take_apart
from whisper_tui.policy.wrappers.peeled import program_name

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ELSEWHERE = frozenset({"-C", "--git-dir", "--work-tree", "--prefix", "--directory", "--chdir", "--cwd"})


def applies(rule: Rule, question: Question) -> bool:
    """Whether a rule is for this session, tool and directory at all."""
    if rule.tool is not None and rule.tool != question.tool:
        return False
    if rule.trust and question.trust not in rule.trust:
        return False
    if rule.until is not None and question.now >= rule.until:
        return False
    if rule.directory is None:
        return True
    cwd = question.resolved.cwd or question.spec.cwd
    return (cwd.rstrip("/") + "/").startswith(rule.directory.rstrip("/") + "/")


def reaches(rule: Rule, command: Command, seen: View) -> bool:
    """Whether a deny or ask rule is about any part of a call, however it is wrapped."""
    if rule.anything or rule.matches(command):
        return True
    if rule.pattern is not None:
        texts = (seen.text.strip(), *(" ".join(word or "*" for word in inner.argv) for inner in seen.commands))
        return any(fnmatch.fnmatchcase(text, rule.pattern) for text in texts)
    if rule.text is not None or rule.argv is not None:
        return any(_is_exactly(rule, inner) for inner in seen.commands)
    words = (rule.program,) if rule.program is not None else rule.prefix or ()
    if _may_begin(words[0] if words else "", seen) and any(_begins(words, inner) for inner in seen.commands):
        return True
    return seen.problem is not None and _stands_somewhere(words, seen)


def _may_begin(word: str, seen: View) -> bool:
    """Whether it is worth comparing word by word."""
    return "=" in word or program_name(word) in seen.names


def _is_exactly(rule: Rule, inner: Inner) -> bool:
    if rule.argv is not None:
        return inner.argv == rule.argv
    return None not in inner.argv and " ".join(word or "" for word in inner.argv) == (rule.text or "").strip()


def _begins(words: Sequence[str], inner: Inner) -> bool:
    """Whether a command begins with these words, its directory and its options in between set aside."""
    assigned = [word for word in words if _ASSIGNMENT.match(word)]
    words = words[len(assigned) :]
    if not all(assignment in inner.assignments for assignment in assigned) or not words:
        return bool(assigned) and not words and all(assignment in inner.assignments for assignment in assigned)
    if inner.name is None or not (inner.name == program_name(words[0]) and _same_place(words[0], inner.argv[0] or "")):
        return False
    rest = tuple(words[1:])
    return any(argv[1 : len(rest) + 1] == rest or _holds(rest, argv) for argv in _forms(inner.argv))


def _same_place(said: str, called: str) -> bool:
    """A rule with a directory is about that file alone; one without is about every program of the name."""
    return "/" not in said or said == called


def _forms(argv: tuple[str | None, ...]) -> list[tuple[str | None, ...]]:
    forms = [argv]
    if program_name(argv[0] or "") == "git":
        apart = take_apart(argv)
        if apart is not None and apart.options:
            forms.append((argv[0], *argv[apart.at :]))
    return forms


def _holds(wanted: Sequence[str], argv: Sequence[str | None]) -> bool:
    """Whether the operands wanted come first among the operands, and the options wanted stand anywhere."""
    wanted_operands = [word for word in wanted if not word.startswith("-")]
    wanted_options = [word for word in wanted if word.startswith("-")]
    named = [word for _, word in operands(argv)]
    if named[: len(wanted_operands)] != wanted_operands:
        return False
    given = [word for word in argv[1:] if word is not None and word.startswith("-")]
    short = {letter for word in given for letter in letters(word)}
    for option in wanted_options:
        if option in given:
            continue
        if option.startswith("--") or len(option) < 2:
            if not any(word.startswith(option + "=") for word in given):
                return False
        elif not set(option[1:]) <= short:
            return False
    return True


def _stands_somewhere(words: Sequence[str], seen: View) -> bool:
    """Whether the words stand one after the other in a text that cannot be read."""
    wanted = (program_name(words[0]), *words[1:]) if words else ()
    if not wanted or any(word not in seen.text for word in wanted) or wanted[0] not in seen.scrap_words:
        return False
    scraps = seen.scraps
    return any(scraps[at : at + len(wanted)] == wanted for at, scrap in enumerate(scraps) if scrap == wanted[0])


def covers(rule: Rule, command: PlainCommand, dangers: Sequence[Danger]) -> bool:
    """Whether an allow rule is about one certain command, with nothing in it that the rule does not name."""
    if rule.anything:
        return not any(danger.id == "opaque" for danger in dangers)
    if rule.prefix is not None:
        return _prefix_covers(rule, command, dangers)
    if rule.pattern is not None:
        return fnmatch.fnmatchcase(" ".join((*command.assignments, *command.argv)), rule.pattern) and not dangers
    if rule.program is not None:
        return not command.assignments and command.argv[0] == rule.program and not dangers
    return False


def _prefix_covers(rule: Rule, command: PlainCommand, dangers: Sequence[Danger]) -> bool:
    prefix = rule.prefix or ()
    if not command.assignments and prefix[:1] != command.argv[:1]:
        return False
    assigned = tuple(word for word in prefix if _ASSIGNMENT.match(word))
    words = prefix[len(assigned) :]
    if not words or command.assignments != assigned or command.argv[: len(words)] != words:
        return False
    if any(danger.word >= len(words) and not _is_named(danger, command, rule) for danger in dangers):
        return False
    return rule.options is None or all(
        _option_is_listed(word, rule.options) for word in _options(command.argv[len(words) :])
    )


def _is_named(danger: Danger, command: PlainCommand, rule: Rule) -> bool:
    """Whether a rule lists the option that makes it dangerous: one that writes a file, or runs what its value says."""
    if danger.id not in {"runs-other-code", "writes-file"} or danger.word >= len(command.argv):
        return False
    word = command.argv[danger.word]
    return word.startswith("-") and rule.options is not None and _option_is_listed(word, rule.options)


def _options(words: Sequence[str]) -> list[str]:
    found = []
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            found.append(word)
    return found


def _option_is_listed(word: str, allowed: Sequence[str]) -> bool:
    return word in allowed or (word.startswith("--") and word.partition("=")[0] + "=" in allowed)


def stays_inside(words: Sequence[str], directory: str) -> bool:
    """Whether no word of a command leads out of a directory."""
    if words[0] in {"cd", "pushd", "popd"} or any(word.partition("=")[0] in _ELSEWHERE for word in words):
        return False
    root = directory.rstrip("/") + "/"
    for word in words[1:]:
        path = word.rpartition("=")[2]
        if ".." in path.split("/") or "://" in path:
            return False
        if path.startswith("/") and not (path + "/").startswith(root) and path != "/dev/null":
            return False
    return True
