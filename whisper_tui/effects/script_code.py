"""The text of code that a command runs: read from files and searched for risks; and tools whose code nobody reads."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from whisper_tui.effects.changes import Changes, ReadScript, printable
from whisper_tui.effects.text_walk import Step
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.effects import LONGEST_CODE, CodeEffect, CodeRisk
from whisper_tui.model.verdict import Resolved, Risk
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.view import LONGEST_READ, Question, view
from whisper_tui.system import host_files

LARGEST_CODE = 1 << 20
"""Bytes of a file that is read as code."""

SHELLS = frozenset({"bash", "sh", "dash", "ksh", "zsh", "ash", "mksh"})
_OF_A_CALL = frozenset({"too-long", "outside-workspace", "substitution", "several-lines", "silent-description"})
"""Risks that are about a call and say nothing about a script, which is long and substitutes as a matter of course."""

_RUNS_SCRIPT = ("Runs a script from", "Runs a script or")
"""Beginnings of sentences about code that is listed as a piece of its own."""

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


PACKAGE_CODE = "packages contain code of their own"
CODE_OF = {"packages": PACKAGE_CODE, "project": "it runs code of the project", "image": "it is in a container image"}
"""Where code comes from that a program runs without naming its file."""


def record_file(step: Step, changes: Changes, path: str | None, name: str, language: str = "") -> None:
    """Record a file that is run. `language`: the shell or interpreter that reads it, if that is known."""
    found = changes.find(step, path)
    known: dict[str, object] = {"name": printable(name)}
    if found is None:
        add_code(changes, known, "the file is only known when it runs")
        return
    known["path"] = printable(found.path)
    if changes.script:
        add_code(changes, known, run_by(changes))
        return
    if found.made:
        add_code(changes, known, "an earlier command writes the file")
        return
    if found.kind != "file":
        add_code(changes, known, "there is no such file" if found.kind == "absent" else "it is not a regular file")
        return
    known["size"] = found.size
    content, why = host_files.read_regular(found.real, LARGEST_CODE)
    if content is None:
        add_code(changes, known, why)
        return
    known["digest"] = digest_of(content)
    if b"\0" in content[:8192]:
        add_code(changes, known, "it is a program in machine code")
        return
    text = content.decode("utf-8", "replace")
    language = language or _shebang(text)
    if language in SHELLS:
        changes.add_code(inspected(step, changes, text, known))
        changes.scripts.append(ReadScript(step, printable(name), text, os.path.dirname(found.path), language))
    else:
        why = f"code of {language} is not analysed" if language else "its language is not known"
        add_code(changes, {**known, **shown(text)}, why)


def record_git_hooks(step: Step, changes: Changes, subcommand: str, git_directory: str) -> None:
    """Record the hooks of a repository that a git command runs."""
    for name in GIT_HOOKS.get(subcommand, ()):
        path = os.path.join(git_directory, "hooks", name)
        if host_files.is_executable(path):
            record_file(step, changes, path, f"git hook {name}")


def run_by(changes: Changes) -> str:
    """Why code that a script runs is not read: one level is."""
    return f"run by {changes.script}"


def add_code(changes: Changes, known: Mapping[str, object], why: str) -> None:
    """Record code that was not inspected, and why."""
    changes.add_code(CodeEffect.model_validate({**known, "not_inspected": why}))


def digest_of(content: bytes) -> str:
    """The first digits of the SHA-256 of a file."""
    return sha256(content).hexdigest()[:16]


def _shebang(text: str) -> str:
    """The interpreter that the first line of a file names; empty if it names none."""
    match = re.match(r"#!\s*(?:\S*/)?([\w.+-]+)(?:[ \t]+(?:-\S+[ \t]+)*([\w.+-]+))?", text)
    if match is None:
        return ""
    return re.sub(r"[\d.]+\Z", "", (match[2] or "") if match[1] == "env" else match[1])


def shown(text: str) -> dict[str, object]:
    """The text of code as an effect holds it, cut to its longest length."""
    kept = printable(text[:LONGEST_CODE]).replace("\0", "␀")[:LONGEST_CODE]
    return {"text": kept, "cut": len(text) > LONGEST_CODE}


def inspected(
    step: Step, changes: Changes, text: str, known: Mapping[str, object], lines: Sequence[int] = ()
) -> CodeEffect:
    """Shell code with the risks that the policy finds in it. `lines`: the line in its file of each line of the text."""
    if len(text) > LONGEST_READ:
        why = f"it is longer than {LONGEST_READ:,} characters"
        return CodeEffect.model_validate({**known, **shown(text), "not_inspected": why})
    problem = view(Shell(text=text)).problem
    directory = step.directory or "/"
    risks = tuple(_at_line(risk, text, lines) for risk in shell_risks(text, directory, changes.view.root_of(directory)))
    found = {"inspected": problem is None, "not_inspected": problem or "", "risks": risks}
    return CodeEffect.model_validate({**known, **shown(text), **found})


@lru_cache(maxsize=64)
def shell_risks(text: str, directory: str, root: str) -> tuple[Risk, ...]:
    """The risks of a shell text by itself, without those that are about a call."""
    question = Question(
        session_id="",
        session_root=root,
        spec=CommandSpec(command=Shell(text=text), cwd=directory),
        description="",
        resolved=Resolved(cwd=directory),
    )
    found = (risk for risk in risks_of(question) if risk.id not in _OF_A_CALL)
    return tuple(risk for risk in found if not risk.sentence.startswith(_RUNS_SCRIPT))


def _at_line(risk: Risk, text: str, lines: Sequence[int]) -> CodeRisk:
    number = None if risk.span is None else text.count("\n", 0, risk.span[0])
    if number is not None:
        number = lines[min(number, len(lines) - 1)] if lines else number + 1
    return CodeRisk(id=risk.id, sentence=risk.sentence, line=number)
