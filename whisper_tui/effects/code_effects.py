"""Code that a command would run and that is not part of it: scripts, recipes of make, scripts of package.json, hooks.

Shell code is read by the policy, one level deep: the scripts that a script runs are not opened.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from whisper_tui.effects.changes import Changes, printable
from whisper_tui.effects.file_view import read_regular
from whisper_tui.effects.operands import ParsedWords
from whisper_tui.effects.text_walk import Step
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.effects import LONGEST_CODE, CodeEffect
from whisper_tui.model.verdict import Resolved, Risk
from whisper_tui.policy.commands.shells import BUILTINS
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.view import LONGEST_READ, Question, view

LARGEST_CODE = 1 << 20
MOST_CODE = 20
"""Pieces of code of one call."""

MOST_TARGETS = 30
"""Targets of a Makefile whose recipes are shown for one command."""

_SHELLS = frozenset({"bash", "sh", "dash", "ksh", "zsh", "ash", "mksh"})
_ALREADY_SAID = frozenset({"length", "outside-workspace", "unseen-script"})
"""Risks that are about a call and say nothing about the code of a file."""


GIT_HOOKS = {
    "commit": ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    "push": ("pre-push",),
    "checkout": ("post-checkout",),
    "switch": ("post-checkout",),
    "merge": ("pre-merge-commit", "post-merge"),
    "pull": ("pre-merge-commit", "post-merge"),
    "rebase": ("pre-rebase", "post-checkout", "post-rewrite"),
    "am": ("applypatch-msg", "pre-applypatch", "post-applypatch"),
}
"""The hooks that subcommands of git run."""


def record_code(step: Step, changes: Changes) -> bool:
    """Record the code that a command runs. Returns False if it is not known to run any."""
    name = step.name or ""
    if name in _RUNNERS:
        return _RUNNERS[name](step, changes)
    if name in _SHELLS or name in {"source", "."}:
        return _shell_file(step, changes)
    if is_interpreter(name):
        return _interpreted(step, changes)
    if step.words and "/" in (step.words[0] or ""):
        return _program_file(step, changes, step.words[0] or "")
    if name not in BUILTINS:
        found = _in_path(step, name)
        # A program of the system is no code that somebody should read first.
        if found is not None and not changes.view.is_outside(os.path.realpath(found)):
            return _program_file(step, changes, found)
    return False


def _in_path(step: Step, name: str) -> str | None:
    for directory in (step.environment.get("PATH") or "").split(os.pathsep):
        candidate = os.path.join(step.directory or "/", directory or ".", name)
        if name and "\0" not in name and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return None


def record_file(step: Step, changes: Changes, path: str | None, name: str, language: str = "") -> None:
    """Record a file that is run. `language`: the shell or interpreter that reads it, if that is known."""
    found = changes.find(step, path)
    if found is None:
        _add(changes, CodeEffect(name=printable(name), not_inspected="the file is only known when it runs"))
        return
    if found.made:
        why = "an earlier command writes the file"
        _add(changes, CodeEffect(name=printable(name), path=printable(found.path), not_inspected=why))
        return
    if found.kind != "file":
        why = "there is no such file" if found.kind == "absent" else "it is no regular file"
        _add(changes, CodeEffect(name=printable(name), path=printable(found.path), not_inspected=why))
        return
    content, why = read_regular(found.real, LARGEST_CODE)
    known = {"name": printable(name), "path": printable(found.path), "size": found.size}
    if content is None:
        _add(changes, CodeEffect.model_validate({**known, "not_inspected": why}))
        return
    known["digest"] = sha256(content).hexdigest()[:16]
    if b"\0" in content[:8192]:
        _add(changes, CodeEffect.model_validate({**known, "not_inspected": "it is a program in machine code"}))
        return
    text = content.decode("utf-8", "replace")
    language = language or _shebang(text)
    if language in _SHELLS:
        _add(changes, _inspected(step, text, known))
    else:
        why = f"code of {language} is not analysed" if language else "its language is not known"
        _add(changes, CodeEffect.model_validate({**known, **_shown(text), "not_inspected": why}))


def record_git_hooks(step: Step, changes: Changes, subcommand: str, git_directory: str) -> None:
    """Record the hooks of a repository that a git command runs."""
    for name in GIT_HOOKS.get(subcommand, ()):
        path = os.path.join(git_directory, "hooks", name)
        if os.access(path, os.X_OK):
            record_file(step, changes, path, f"git hook {name}", "sh")


def _shebang(text: str) -> str:
    """The interpreter that the first line of a file names; empty if it names none."""
    match = re.match(r"#!\s*(?:\S*/)?([\w.+-]+)(?:[ \t]+(?:-\S+[ \t]+)*([\w.+-]+))?", text)
    if match is None:
        return ""
    return (match[2] or "") if match[1] == "env" else match[1]


def _shown(text: str) -> dict[str, object]:
    shown = printable(text[:LONGEST_CODE]).replace("\0", "␀")[:LONGEST_CODE]
    return {"text": shown, "cut": len(text) > LONGEST_CODE}


def _inspected(step: Step, text: str, known: Mapping[str, object]) -> CodeEffect:
    """Shell code with the risks that the policy finds in it."""
    if len(text) > LONGEST_READ:
        why = f"it is longer than {LONGEST_READ:,} characters"
        return CodeEffect.model_validate({**known, **_shown(text), "not_inspected": why})
    problem = view(Shell(text=text)).problem
    risks = shell_risks(text, step.directory or "/")
    found = {"inspected": problem is None, "not_inspected": problem or "", "risks": risks}
    return CodeEffect.model_validate({**known, **_shown(text), **found})


def shell_risks(text: str, directory: str) -> tuple[Risk, ...]:
    """The risks of a shell text by itself, without those that are about a call."""
    question = Question(
        session_id="",
        session_root=directory,
        spec=CommandSpec(command=Shell(text=text), cwd=directory),
        description="",
        resolved=Resolved(cwd=directory),
    )
    return tuple(risk for risk in risks_of(question) if risk.id not in _ALREADY_SAID)


def _add(changes: Changes, code: CodeEffect) -> None:
    if len(changes.code) < MOST_CODE:
        changes.code.append(code)
    else:
        changes.unknown(None, "everything", f"it runs more than {MOST_CODE} scripts")


def _shell_file(step: Step, changes: Changes) -> bool:
    """`bash FILE`, `source FILE`; with `-c` the text is part of the command."""
    args = ParsedWords(step.words, "oO", ("rcfile", "init-file"))
    if args.has("c"):
        return True
    operand = args.operands[0] if args.operands else None
    if not args.operands or operand == "-" or args.has("s"):
        redirected = next((each.target for each in step.redirections if each.operator == "<"), None)
        if redirected is not None:
            record_file(step, changes, redirected, f"{step.name} < {redirected}", "bash")
        elif not any(each.body is not None for each in step.redirections):
            changes.unknown(step, "everything", "the script comes from its input")
        return True
    language = "bash" if step.name in {"source", "."} else step.name or ""
    record_file(step, changes, operand, f"{step.name} {operand or '…'}", language)
    return True


def _interpreted(step: Step, changes: Changes) -> bool:
    name = step.name or ""
    valued = "WXm" if name.startswith(("python", "pypy")) else "rIeEpM"
    args = ParsedWords(step.words, valued, ("require", "import", "loader", "eval", "print"))
    language = re.sub(r"[\d.]+\Z", "", name)
    if args.has("c", "e", "E", "p", "eval", "print"):
        changes.unknown(step, "everything", f"code of {language} is not analysed")
    elif args.has("m"):
        changes.unknown(step, "everything", f"what the module {args.value('m') or '…'} changes is not known")
    elif not args.operands or args.operands[0] == "-":
        changes.unknown(step, "everything", f"code of {language} is not analysed")
    else:
        operand = next(iter(ParsedWords(step.words[:1] + _before_operand(step, valued), valued).operands), None)
        record_file(step, changes, operand, f"{name} {operand or '…'}", language)
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
    if found is not None and found.kind == "file" and not found.made and changes.view.is_outside(found.real):
        content, _ = read_regular(found.real, LARGEST_CODE)
        # A program of the system by its path is no script of somebody else.
        if found.real.startswith(("/usr/", "/bin/", "/opt/", "/nix/", "/lib")) or content is None:
            return False
    record_file(step, changes, path, step.words[0] or path)
    return True


def _package_script(step: Step, changes: Changes) -> bool:
    """`npm run NAME` and its like: the scripts of package.json."""
    words = [word for word in step.words[1:] if word is not None]
    args = ParsedWords(("npm", *words), "Cw", ("prefix", "workspace", "dir", "cwd", "filter"))
    operands = [word for word in args.operands if word is not None]
    verb = operands[0] if operands else ""
    if verb in {"run", "run-script", "rum", "urn"}:
        script = operands[1] if len(operands) > 1 else ""
    elif verb in {"test", "start", "stop", "restart", "t", "tst"}:
        script = "test" if verb in {"t", "tst"} else verb
    elif step.name in {"yarn", "pnpm", "bun"} and verb and verb not in _VERBS:
        script = verb
    else:
        if verb in {"install", "i", "ci", "add", "publish", "update", "rebuild", "pack"}:
            changes.unknown(step, "everything", "packages and their install scripts change files below node_modules")
            return True
        return False
    if not script:
        return True  # it lists the scripts
    base = args.value("C", "prefix", "dir", "cwd") or "."
    path = os.path.join(base, "package.json")
    scripts, size = _scripts_of(step, changes, path)
    if script not in scripts:
        why = "package.json has no such script" if scripts else "package.json cannot be read"
        _add(changes, CodeEffect(name=f"{step.name} run {printable(script)}", path=printable(path), not_inspected=why))
        return True
    for name in (f"pre{script}", script, f"post{script}"):
        if name in scripts:
            named = {"name": f"{step.name} run {printable(name)}", "path": _absolute(step, path), "size": size}
            named["digest"] = sha256(scripts[name].encode("utf-8", "replace")).hexdigest()[:16]
            _add(changes, _inspected(step, scripts[name], named))
    return True


_VERBS = frozenset(
    (
        "install add remove upgrade up update init info why list ls outdated publish pack cache config create dlx "
        "exec global link login logout node owner set unlink version versions workspace workspaces audit bin "
        "dedupe import help store patch prune rebuild root licenses i ci un rm x pm"
    ).split()
)


def _absolute(step: Step, path: str) -> str:
    return printable(os.path.normpath(os.path.join(step.directory or "/", path)))


def _scripts_of(step: Step, changes: Changes, path: str) -> tuple[dict[str, str], int | None]:
    found = changes.find(step, path)
    content = None if found is None else changes.view.content(found)[0]
    try:
        value = json.loads(content) if content else None
    except (ValueError, RecursionError):
        value = None
    scripts = value.get("scripts") if isinstance(value, dict) else None
    if not isinstance(scripts, dict):
        return {}, None
    known = {name: text for name, text in scripts.items() if isinstance(name, str) and isinstance(text, str)}
    return known, found.size if found is not None else None


class _Rule(NamedTuple):
    needs: tuple[str, ...]
    recipe: tuple[str, ...]


def _make(step: Step, changes: Changes) -> bool:
    args = ParsedWords(step.words, "CfIjloW", ("directory", "file", "makefile", "jobs", "include-dir", "load-average"))
    if args.has("n", "just-print", "dry-run", "q", "question", "v", "version"):
        return True  # recipes with a plus run nevertheless, but nobody asks for a dry run of those
    base = args.value("C", "directory") or "."
    named = args.value("f", "file", "makefile")
    names = [named] if named else ["GNUmakefile", "makefile", "Makefile"]
    targets = [word for word in args.operands if word is None or "=" not in word]
    _recipes(step, changes, [os.path.join(base, name) for name in names], targets, _make_rules)
    return True


def _just(step: Step, changes: Changes) -> bool:
    args = ParsedWords(step.words, "fd", ("justfile", "working-directory", "set", "shell"))
    if args.has("l", "list", "summary", "show", "evaluate", "dump", "n", "dry-run"):
        return True
    named = args.value("f", "justfile")
    names = [named] if named else ["justfile", "Justfile", ".justfile"]
    _recipes(step, changes, names, args.operands[:1], _just_rules)
    return True


_RULE = re.compile(r"([^\s:#=][^:#=]*?)\s*::?(?!=)\s*([^=].*|)\Z")


def _recipes(
    step: Step,
    changes: Changes,
    names: list[str],
    targets: list[str | None],
    reader: Callable[[str], tuple[dict[str, _Rule], str]],
) -> None:
    """Record the recipes of targets and of those that they need."""
    what = " ".join((step.name or "", *(target or "…" for target in targets)))
    found = next((each for name in names if (each := changes.find(step, name)) and each.kind == "file"), None)
    if found is None or None in targets:
        why = "the target is only known when it runs" if None in targets else "no file with recipes was found"
        _add(changes, CodeEffect(name=printable(what), not_inspected=why))
        return
    content, why = changes.view.content(found)
    known = {"name": printable(what), "path": printable(found.path), "size": found.size}
    if content is None:
        _add(changes, CodeEffect.model_validate({**known, "not_inspected": why}))
        return
    known["digest"] = sha256(content).hexdigest()[:16]
    rules, first = reader(content.decode("utf-8", "replace"))
    wanted = [target for target in targets if target is not None] or ([first] if first else [])
    lines, missing = _gathered(rules, wanted)
    text = "\n".join(lines)
    if missing:
        shown = {**_shown(text), "not_inspected": f"there is no simple rule for {printable(missing)}"}
        _add(changes, CodeEffect.model_validate({**known, **shown}))
        return
    effect = _inspected(step, text, known)
    if re.search(r"\$[({@<^*%]|\{\{", text) and effect.inspected:
        why = "the recipe holds variables that are not expanded"
        effect = effect.model_copy(update={"inspected": False, "not_inspected": why})
    _add(changes, effect)


def _gathered(rules: Mapping[str, _Rule], wanted: list[str]) -> tuple[list[str], str]:
    """The recipe lines of targets, those that they need first; and a target for which there is no rule."""
    lines: list[str] = []
    done: set[str] = set()
    waiting = list(reversed(wanted))
    opened: set[str] = set()
    while waiting:
        target = waiting[-1]
        rule = rules.get(target)
        if rule is None and target in wanted:
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
    for line in _logical_lines(text):
        if line.startswith("\t"):
            command = line.strip().lstrip("@-+").strip()
            for target in current if command else ():
                rules[target] = rules[target]._replace(recipe=(*rules[target].recipe, command))
            continue
        if not line.strip() or line.startswith("#"):
            continue
        match = _RULE.match(line)
        current = tuple(match[1].split()) if match else ()
        for target in current:
            needs, _, recipe = match[2].partition(";") if match else ("", "", "")
            before = rules.get(target, _Rule((), ()))
            more = (recipe.strip(),) if recipe.strip() else ()
            rules[target] = _Rule((*before.needs, *needs.replace("|", " ").split()), (*before.recipe, *more))
            if not first and not target.startswith("."):
                first = target
    return rules, first


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with those that end in a backslash joined to the next."""
    held = ""
    for line in text.split("\n"):
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield held + (line.lstrip() if held else line)
        held = ""
    if held:
        yield held


def _just_rules(text: str) -> tuple[dict[str, _Rule], str]:
    """The recipes of a justfile, and the first of them."""
    rules: dict[str, _Rule] = {}
    first = current = ""
    for line in text.split("\n"):
        if line[:1] in {" ", "\t"} and current:
            command = line.strip().lstrip("@-").strip()
            if command:
                rules[current] = rules[current]._replace(recipe=(*rules[current].recipe, command))
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
