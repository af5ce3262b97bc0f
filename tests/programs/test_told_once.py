"""What the table of programs knows stands there alone: no module that judges has a set of names of its own.

Two kinds of names are left out: those of the shell's own commands, which its grammar gives a meaning, and the keys of
a dispatch to functions, because what a check or an effect does is code.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import whisper_tui
from whisper_tui.policy.commands.wrappers import BUILTINS
from whisper_tui.programs.entries import program_names

PACKAGE = Path(whisper_tui.__file__).parent
JUDGING = ("policy", "effects", "present", "supervisor/approvals")
"""Packages that ask what a program does. Elsewhere, a word such as `read` or `file` is no program."""

EXCEPTIONS = {
    # a check in code, for a language that the table cannot say
    "policy/commands/read_only_list.py:_GREPS": "patterns that grep takes for unknown options",
    "policy/commands/read_only_programs.py:_CHECKS": "the names of one check for packers",
    "policy/commands/unwrap.py:_shell": "shells that answer --version",
    "policy/commands/wrapper_directories.py:_LOGINS": "`su -` logs in",
    "policy/commands/wrapper_files.py:_is_odd": "sudoedit, in two wrappers",
    "policy/risks/command_dangers.py:_CHECKS": "the names of one check for HTTP clients",
    "policy/risks/command_dangers.py:_host_dangers": "without words they read what to do from the input",
    "policy/risks/command_dangers.py:_of_words": "patterns of what is deleted",
    "policy/risks/dangerous_options.py:_options": "letters without a dash",
    "policy/risks/host_access.py:_QUIET": "some of their subcommands reach other machines",
    "policy/risks/host_access.py:CONTAINERS": "the names of one check for containers",
    "policy/risks/sensitive_paths.py:_written_by": "which words of these are written needs their grammar",
    "policy/risks/sensitive_paths.py:searches_trees": "with an option for it",
    "policy/rules/grants.py:is_too_broad": "shells of Windows, and runners of packages",
    "effects/__init__.py:_fed": "their operands are no machines",
    "effects/code_effects.py:_SCRIPTED": "the language of the file that each executes",
    "effects/host_effects.py:_DATABASES": "the variable that names the machine",
    "effects/host_effects.py:_REGISTRIES": "the machine that a client asks by default",
    "effects/transfer_programs.py:_ENDINGS": "the ending of the file that each makes",
    # other names of a program, and words that stand for others
    "policy/commands/spellings.py:_PROGRAMS": "what a name stands for, such as `npx` for `npm exec`",
    "policy/commands/spellings.py:_OLD_OPTIONS": "letters without a dash, also of programs without such an entry",
    # the shells whose text whisper_tui itself can read
    "policy/risks/call_risks.py:KNOWN_SHELL_PATHS": "paths of shells",
    "policy/view.py:_view_of_text": "shells whose grammar is that of bash",
    "effects/script_code.py:SHELLS": "shells whose files are read",
    "effects/text_walk.py:_SHELLS": "shells whose texts are followed",
    # words that are no programs here
    "policy/risks/telling_verbs.py:_CLEARS_WHAT_IS_MADE": "pairs of a program and its subcommand",
    "policy/rules/grants.py:_LONGER": "subcommands",
    "present/effects_text.py:EffectKind": "kinds of effects",
    "supervisor/approvals/resolve.py:_START_ANOTHER": "links that start one of several versions",
}
"""Literals that hold the names of programs, by module and top-level name, with the reason."""


def literals(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The top-level name around each collection of words in a module, and the words."""
    for statement in ast.parse(path.read_text("utf-8")).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        yield from ((name, words) for node in ast.walk(statement) if (words := words_of(node)))


def words_of(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Set(elts=found) | ast.List(elts=found) | ast.Tuple(elts=found):
            return constants(found)
        case ast.Dict(keys=keys, values=values):
            code = (ast.Name, ast.Attribute, ast.Call, ast.Lambda)
            return constants([key for key, value in zip(keys, values, strict=True) if not isinstance(value, code)])
        case ast.Call(func=ast.Attribute(attr="split", value=ast.Constant(value=str(text)))):
            return tuple(text.split())
        case ast.MatchOr(patterns=patterns):
            return constants([each.value for each in patterns if isinstance(each, ast.MatchValue)])
    return ()


def constants(nodes: list[ast.expr] | list[ast.expr | None]) -> tuple[str, ...]:
    return tuple(each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str))


def sets_of_programs() -> Counter[str]:
    """How many collections of names of programs each place has: at least two, and half of the words."""
    programs = set(program_names()) - BUILTINS
    return Counter(
        f"{path.relative_to(PACKAGE)}:{name}"
        for package in JUDGING
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for name, words in literals(path)
        if len(programs.intersection(words)) >= max(2, len(words) / 2)
    )


def test_no_module_has_a_set_of_programs_beside_the_table() -> None:
    found = sets_of_programs()
    assert not found.keys() - EXCEPTIONS.keys(), "a fact about programs: make it a field of their entries"
    assert not EXCEPTIONS.keys() - found.keys(), "no exception any more"


def test_a_set_of_programs_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'A = frozenset("rm cp mv".split())\nB = {"rm": print}\n\n\ndef f(x):\n    return x in {"rm", "cp"}\n'
    )
    assert [(name, words) for name, words in literals(module) if len(words) > 1] == [
        ("A", ("rm", "cp", "mv")),
        ("f", ("rm", "cp")),
    ]
