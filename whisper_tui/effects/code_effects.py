"""Code that a command would run and that is not part of it: scripts, recipes of make, scripts of package.json, hooks.

Shell code is read by the policy, one level deep: the scripts that a script runs are not opened.
"""

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from whisper_tui.effects.changes import Changes, ReadScript, printable
from whisper_tui.effects.operands import parse_words
from whisper_tui.effects.script_code import (
    CODE_OF,
    PACKAGE_CODE,
    SHELLS,
    add_code,
    digest_of,
    inspected,
    record_file,
    run_by,
    shown,
)
from whisper_tui.effects.text_walk import Step
from whisper_tui.policy.commands.argv import Words
from whisper_tui.policy.commands.wrappers import BUILTINS
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.shell.syntax import input_of_command
from whisper_tui.policy.view import CommandView
from whisper_tui.programs.entries import entry_of
from whisper_tui.system import host_files

MOST_TARGETS = 30
"""Targets of a Makefile whose recipes are shown for one command."""


_TELLS_ABOUT_ITSELF = frozenset({"--version", "-V", "--help", "-h", "-version", "version", "help"})


def may_run_code(seen: CommandView, programs: Iterable[str | None], root: str) -> bool:
    """True unless a call certainly runs nothing but programs of the system: then nobody has to look for its code."""
    return (
        seen.problem is not None
        or any(command.runner is not None or _may_be_code(command.argv) for command in seen.commands)
        or any(program is not None and program.startswith(root.rstrip("/") + "/") for program in programs)
    )


def _may_be_code(argv: Words) -> bool:
    first = argv[0] if argv else ""
    if first is None or "/" in first:
        return True
    known = (
        first in _RUNNERS
        or entry_of(first).brings_code != ""
        or first in SHELLS
        or first in _SCRIPTED
        or first in {"source", ".", "git"}
    )
    return known or is_interpreter(first)


def record_code(step: Step, changes: Changes) -> bool:
    """Record the code that a command runs. Returns False if it is not known to run any."""
    before = len(changes.code)
    step = _with_fed_words(step)
    known = _record_known(step, changes)
    if step.by_runner and len(changes.code) == before:
        manager = step.through[-1] if step.through else ""
        # `yarn run NAME` is a script of package.json, or a program of a package.
        if entry_of(manager).runs_scripts and _scripts_named(step, changes, manager, step.name or "", "."):
            return True
        add_code(changes, {"name": _named(step, (*step.through, step.name))}, PACKAGE_CODE)
        return True
    return known


def _with_fed_words(step: Step) -> Step:
    """The command with the words that find and xargs put into it, which are only known when it runs."""
    if not step.through or not entry_of(step.through[-1]).feeds:
        return step
    words = tuple(None if word is not None and "{}" in word else word for word in step.words)
    return replace(step, words=words if None in words else (*words, None))


def _record_known(step: Step, changes: Changes) -> bool:
    name = step.name or ""
    if name in _RUNNERS:
        return _RUNNERS[name](step, changes)
    if name in SHELLS or name in {"source", "."}:
        return _shell_file(step, changes)
    if name in _SCRIPTED:
        args = parse_words(step.words, name)
        for path in args.all("f", "file"):
            record_file(step, changes, path, f"{name} -f {path or '…'}", _SCRIPTED[name])
        return args.has("f", "file")
    if entry_of(name).brings_code and _tool(step, changes):
        return True
    if is_interpreter(name):
        return _interpreted(step, changes)
    if step.words and "/" in (step.words[0] or ""):
        return _program_file(step, changes, step.words[0] or "")
    if name not in BUILTINS:
        found = _in_path(step, name)
        # A program of the system is no code that somebody should read first.
        if found is not None and not changes.view.is_outside(host_files.realpath(found)):
            return _program_file(step, changes, found)
    return False


_SCRIPTED = {**dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "awk"), **dict.fromkeys(("sed", "gsed"), "sed")}
"""Programs with scripts of their own language."""


def _tool(step: Step, changes: Changes) -> bool:
    """A tool that runs code which is not in a file that it names."""
    entry = entry_of(step.name)
    if _TELLS_ABOUT_ITSELF.intersection(step.words[1:2]):
        return False
    words = [word for word in step.words[1:] if word is None or not word.startswith(("-", "+"))]
    # An option's value may stand before the subcommand, so each of the first words may be it.
    pairs = {f"{one}-{other}" for one, other in itertools.pairwise(words[:3])}
    given = {word for word in words[:3] if word} | pairs
    verb = next((each for each in entry.brings_code_when if each in given), "")
    if entry.brings_code_when and not verb and None not in words[:1]:
        return False
    add_code(changes, {"name": _named(step, (step.name, *verb.split("-")))}, CODE_OF[entry.brings_code])
    return True


def _named(step: Step, words: tuple[str | None, ...]) -> str:
    """The beginning of a command as a name for the code that it runs."""
    return printable(" ".join(word or "…" for word in words if word != ""))


def _in_path(step: Step, name: str) -> str | None:
    for directory in (step.environment.get("PATH") or "").split(os.pathsep):
        candidate = os.path.join(step.directory or "/", directory or ".", name)
        if name and "\0" not in name and host_files.is_executable(candidate) and host_files.is_file(candidate):
            return candidate
    return None


def _shell_file(step: Step, changes: Changes) -> bool:
    """`bash FILE`, `source FILE`; with `-c` the text is part of the command."""
    args = parse_words((step.words[0], *_before_operand(step, "oO")), "bash")
    if args.has("c"):
        # A text that is known is a command of its own.
        changes.unknown(step, "everything", step.opaque or "its script is not known before it runs")
        return True
    operand = args.operands[0] if args.operands else None
    if not args.operands or operand == "-" or args.has("s"):
        if (redirected := _redirected(step)) is not None:
            record_file(step, changes, redirected, f"{step.name} < {redirected}", "bash")
        else:
            changes.unknown(step, "everything", "the script comes from its input")
        return True
    language = "bash" if step.name in {"source", "."} else step.name or ""
    record_file(step, changes, operand, f"{step.name} {operand or '…'}", language)
    return True


def _redirected(step: Step) -> str | None:
    """The file that a command reads as its standard input. None: it is none, or is only known when it runs."""
    read = input_of_command(step.redirections)
    return read.target if read is not None and read.operator == "<" else None


def _interpreted(step: Step, changes: Changes) -> bool:
    name = step.name or ""
    valued = "WXm" if name.startswith(("python", "pypy")) else "rIeEpM"
    # The options of the script itself stand behind it, and are not those of the interpreter.
    words = (step.words[0], *_before_operand(step, valued))
    args = parse_words(words, name)
    language = re.sub(r"[\d.]+\Z", "", name)
    if args.has("c", "e", "E", "p", "eval", "print"):
        changes.unknown(step, "everything", f"code of {language} is not analysed")
    elif args.has("m"):
        module = args.value("m") or "…"
        add_code(changes, {"name": _named(step, (name, "-m", module))}, f"code of {language} is not analysed")
    elif not args.operands or args.operands[0] == "-":
        if (redirected := _redirected(step)) is not None:
            record_file(step, changes, redirected, f"{name} < {redirected}", language)
            return True
        changes.unknown(step, "everything", f"code of {language} is not analysed")
    else:
        record_file(step, changes, args.operands[0], f"{name} {args.operands[0] or '…'}", language)
    return True


def _before_operand(step: Step, valued: str) -> tuple[str | None, ...]:
    """The words of an interpreter up to its script: what follows belongs to the script."""
    skip = False
    for at, word in enumerate(step.words[1:], start=1):
        if skip:
            skip = False
        elif word is None or not word.startswith("-"):
            return step.words[1 : at + 1]
        else:
            skip = len(word) == 2 and word[1] in valued
    return step.words[1:]


def _program_file(step: Step, changes: Changes, path: str) -> bool:
    found = changes.find(step, path)
    # A program of the system by its path is no script of somebody else.
    if found is not None and found.real.startswith(_SYSTEM) and changes.view.is_outside(found.real):
        return False
    record_file(step, changes, path, step.words[0] or path)
    return True


_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/opt/", "/nix/", "/lib")


def _package_script(step: Step, changes: Changes) -> bool:
    """`npm run NAME` and its like: the scripts of package.json."""
    words = [word for word in step.words[1:] if word is not None]
    args = parse_words(("npm", *words), step.name or "")
    operands = [word for word in args.operands if word is not None]
    verb = operands[0] if operands else ""
    if verb in {"run", "run-script", "rum", "urn"}:
        script = operands[1] if len(operands) > 1 else ""
    elif verb in {"test", "start", "stop", "restart", "t", "tst"}:
        script = "test" if verb in {"t", "tst"} else verb
    elif entry_of(step.name).runs_scripts and verb and verb not in _VERBS:
        script = verb
    else:
        installs = verb in _INSTALLS or (step.name == "yarn" and not operands and not args.has("version", "help", "v"))
        if installs:
            why = "packages and their install scripts change files below node_modules"
            changes.unknown(step, "everything", why)
            add_code(changes, {"name": _named(step, (step.name, verb))}, PACKAGE_CODE)
        return installs
    if not script:
        return True  # it lists the scripts
    base = args.value("C", "prefix", "dir", "cwd") or "."
    if not _scripts_named(step, changes, step.name or "", script, base):
        path = os.path.join(base, "package.json")
        why = "package.json has no such script, or cannot be read"
        add_code(changes, {"name": f"{step.name} run {printable(script)}", "path": _absolute(step, path)}, why)
    return True


def _scripts_named(step: Step, changes: Changes, manager: str, script: str, base: str) -> bool:
    """Record a script of package.json, and those that run before and after it. Returns False if there is none."""
    path = os.path.join(base, "package.json")
    package = _package(step, changes, path)
    if script not in package.scripts:
        return False
    for name in (f"pre{script}", script, f"post{script}"):
        if name in package.scripts:
            title = f"{manager} run {printable(name)}"
            known = {"name": title, "path": _absolute(step, path), "size": package.size, "digest": package.digest}
            _add_text(step, changes, package.scripts[name], known, [package.line_of(name)])
    return True


_INSTALLS = frozenset("install i ci add publish update up upgrade rebuild pack it install-test create init".split())
_VERBS = frozenset(
    (
        "install add remove upgrade up update init info why list ls outdated publish pack cache config create dlx "
        "exec global link login logout node owner set unlink version versions workspace workspaces audit bin "
        "dedupe import help store patch prune rebuild root licenses i ci un rm x pm"
    ).split()
)


def _absolute(step: Step, path: str) -> str:
    return printable(os.path.normpath(os.path.join(step.directory or "/", path)))


class _Package(NamedTuple):
    scripts: dict[str, str]
    text: str = ""
    size: int | None = None
    digest: str | None = None

    def line_of(self, script: str) -> int:
        """The line of package.json in which a script stands, as far as its text tells."""
        start = max(0, self.text.find('"scripts"'))
        return self.text.count("\n", 0, max(start, self.text.find(json.dumps(script), start))) + 1


def _package(step: Step, changes: Changes, path: str) -> _Package:
    found = changes.find(step, path)
    content = None if found is None else changes.view.content(found)[0]
    try:
        value = json.loads(content) if content else None
    except (ValueError, RecursionError):
        value = None
    scripts = value.get("scripts") if isinstance(value, dict) else None
    if not isinstance(scripts, dict) or not content or found is None:
        return _Package({})
    known = {name: text for name, text in scripts.items() if isinstance(name, str) and isinstance(text, str)}
    return _Package(known, content.decode("utf-8", "replace"), found.size, digest_of(content))


def _add_text(
    step: Step, changes: Changes, text: str, known: Mapping[str, object], lines: list[int], *, runs: bool = True
) -> None:
    """Record shell text that stands in another file. `runs`: False if it may be up to date, and not run."""
    if changes.script:
        add_code(changes, known, run_by(changes))
        return
    changes.add_code(inspected(step, changes, text, known, lines))
    directory = os.path.dirname(str(known.get("path") or "")) or step.directory or "/"
    script = ReadScript(step, str(known["name"]), text, directory, "sh", starts_there=True, runs=runs)
    changes.scripts.append(script)


class _Rule(NamedTuple):
    needs: tuple[str, ...]
    recipe: tuple[tuple[int, str], ...]
    """Its commands, each with its line in the file."""


def _make(step: Step, changes: Changes) -> bool:
    args = parse_words(step.words, "make")
    if args.has("n", "just-print", "dry-run", "q", "question", "v", "version"):
        return True  # recipes with a plus run nevertheless, but nobody asks for a dry run of those
    base = args.value("C", "directory") or "."
    named = args.value("f", "file", "makefile")
    names = [named] if named else ["GNUmakefile", "makefile", "Makefile"]
    targets = [word for word in args.operands if word is None or "=" not in word]
    _recipes(step, changes, [os.path.join(base, name) for name in names], targets, _make_rules)
    return True


def _just(step: Step, changes: Changes) -> bool:
    args = parse_words(step.words, "just")
    if args.has("l", "list", "summary", "show", "evaluate", "dump", "n", "dry-run"):
        return True
    named = args.value("f", "justfile")
    names = [named] if named else ["justfile", "Justfile", ".justfile"]
    _recipes(step, changes, names, args.operands[:1], _just_rules)
    return True


_RULE = re.compile(r"([^\s:#=][^:#=]*?)\s*::?(?!=)\s*([^=].*|)\Z")


_MORE_IN_MAKEFILE = re.compile(
    r"^\s*-?s?include\b|\$[({](?:shell|eval|call|file|guile)\b|^[^\t\n#]*!=|^\s*(?:export\s+)?SHELL\s*[:?]*=|^\s*define\b"
    r"|^\s*(?:load\b|\.SHELLFLAGS)", re.MULTILINE
)  # fmt: skip
_MORE_IN_JUSTFILE = re.compile(r"^(?:import|mod|!include)\b|`|^set\s+(?:shell|dotenv|script)|\bshell\(", re.MULTILINE)
"""Parts by which a file runs, includes or replaces more than the recipes that are read."""


def _recipes(
    step: Step,
    changes: Changes,
    names: list[str],
    targets: list[str | None],
    reader: Callable[[str], tuple[dict[str, _Rule], str]],
) -> None:
    """Record the recipes of targets and of those that they need."""
    what = _named(step, (step.name, *targets))
    found = next((each for name in names if (each := changes.find(step, name)) and each.kind == "file"), None)
    if found is None or None in targets:
        why = "the target is only known when it runs" if None in targets else "no file with recipes was found"
        add_code(changes, {"name": what}, why)
        return
    content, why = changes.view.content(found)
    known: dict[str, object] = {"name": what, "path": printable(found.path), "size": found.size}
    if content is None:
        add_code(changes, known, why)
        return
    known["digest"] = digest_of(content)
    whole = content.decode("utf-8", "replace")
    rules, first = reader(whole)
    wanted = [target for target in targets if target is not None] or ([first] if first else [])
    recipe, missing = _gathered(rules, wanted)
    text = "\n".join(line for _, line in recipe)
    more = (_MORE_IN_JUSTFILE if reader is _just_rules else _MORE_IN_MAKEFILE).search(whole)
    if missing or not wanted:
        add_code(changes, {**known, **shown(text)}, f"there is no simple rule for {printable(missing or what)}")
    elif more:
        line = whole.count("\n", 0, more.end()) + 1
        add_code(changes, {**known, **shown(text)}, f"line {line} of the file runs or includes more than the recipe")
    elif re.search(r"\$[({@<^*%]|\{\{", text):
        add_code(changes, {**known, **shown(text)}, "the recipe holds variables that are not expanded")
    else:
        _add_text(step, changes, text, known, [number for number, _ in recipe], runs=False)


def _gathered(rules: Mapping[str, _Rule], wanted: list[str]) -> tuple[list[tuple[int, str]], str]:
    """The recipe lines of targets, those that they need first; and a target for which there is no rule."""
    lines: list[tuple[int, str]] = []
    done: set[str] = set()
    waiting = list(reversed(wanted))
    opened: set[str] = set()
    has_patterns = any("%" in target for target in rules)
    while waiting:
        target = waiting[-1]
        rule = rules.get(target)
        if rule is None and (target in wanted or has_patterns):
            return lines, target
        if rule is None or target in done or target in opened or len(done) > MOST_TARGETS:
            waiting.pop()
            if rule is not None and target not in done:
                lines += rule.recipe
                done.add(target)
            continue
        opened.add(target)
        waiting += reversed(rule.needs)
    return lines, ""


def _make_rules(text: str) -> tuple[dict[str, _Rule], str]:
    """The explicit rules of a Makefile, and its first target."""
    rules: dict[str, _Rule] = {}
    first = ""
    current: tuple[str, ...] = ()
    for number, line in _logical_lines(text):
        if line.startswith("\t"):
            command = line.strip().lstrip("@-+").strip()
            for target in current if command else ():
                rules[target] = rules[target]._replace(recipe=(*rules[target].recipe, (number, command)))
            continue
        if not line.strip() or line.startswith("#"):
            continue
        match = _RULE.match(line)
        current = tuple(match[1].split()) if match else ()
        for target in current:
            needs, _, recipe = match[2].partition(";") if match else ("", "", "")
            before = rules.get(target, _Rule((), ()))
            more = ((number, recipe.strip()),) if recipe.strip() else ()
            rules[target] = _Rule((*before.needs, *needs.replace("|", " ").split()), (*before.recipe, *more))
            if not first and not target.startswith("."):
                first = target
    return rules, first


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, those that end in a backslash joined to the next."""
    held, begun = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        begun = begun if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield begun, held + (line.lstrip() if held else line)
        held = ""
    if held:
        yield begun, held


def _just_rules(text: str) -> tuple[dict[str, _Rule], str]:
    """The recipes of a justfile, and the first of them."""
    rules: dict[str, _Rule] = {}
    first = current = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line[:1] in {" ", "\t"} and current:
            command = line.strip().lstrip("@-").strip()
            if command:
                rules[current] = rules[current]._replace(recipe=(*rules[current].recipe, (number, command)))
            continue
        match = re.match(r"@?([A-Za-z_][\w-]*)([^:=]*):(?!=)\s*(.*)\Z", line)
        current = match[1] if match else ""
        if match:
            needs = re.findall(r"\(\s*([\w-]+)[^)]*\)|([\w-]+)", match[3].partition("#")[0])
            rules[current] = _Rule(tuple(one or other for one, other in needs), ())
            first = first or current
    return rules, first


_RUNNERS: Mapping[str, Callable[[Step, Changes], bool]] = {
    "npm": _package_script,
    "yarn": _package_script,
    "pnpm": _package_script,
    "bun": _package_script,
    "make": _make,
    "gmake": _make,
    "just": _just,
}
