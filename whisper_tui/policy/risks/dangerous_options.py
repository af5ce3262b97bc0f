"""Options and operands that make a program run something else or write a file (decision 9)."""

import re

from whisper_tui.policy.commands.argv import Danger, Words, letters
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.policy.commands.spellings import shortens_options
from whisper_tui.programs.entries import ProgramEntry, entry_of

# for programs that nobody has examined: the name of an option is the only hint; `--no-script` is harmless
_GENERIC_RUNS = re.compile(
    r"--(?!(?:no|ignore|skip|disable|without)-)(?:[\w]+-)*(?:exec|execute|command|cmd|shell|hooks?|plugins?|pager|editor|"
    r"wrapper|eval|rsh|rcfile|renderer|preprocessor|postprocess|launcher|interpreter|callback|preload|loader|askpass|"
    r"program|prog|browser|viewer|script)(?:-[\w-]+)?(?:=.*)?",
    re.DOTALL,
)
_ONLY_NAMED_ALIKE = frozenset(
    "--dereference-command-line --dereference-command-line-symlink-to-dir --program-headers --pager-end "
    "--dump-catalog".split()
)
"""Options of well-known programs that neither run nor write anything, whatever their names say."""
_GENERIC_WRITES = re.compile(
    r"--(?!(?:no|ignore|skip|disable|without)-)(?:[\w]+-)*(?:out(?:put)?-?(?:file|dir|path|directory)|out-?file|log-?file|"
    r"write(?:-[\w-]+)?|save(?:-[\w-]+)?|dump(?:-[\w-]+)?|trace-?file|in-?place|to-file)(?:=.*)?",
    re.DOTALL,
)


def dangerous_options(argv: Words, name: str) -> list[Danger]:
    """Return the options and operands of a known program that run or write something."""
    entry = entry_of(name)
    found = [
        *_options(argv, name, entry, entry.runs, "runs-other-code"),
        *_options(argv, name, entry, entry.writes, "writes-file"),
    ]
    pattern = entry.runs_text
    if pattern is not None:
        sentence = f"Its arguments make {name} run a command, or open another file"
        found += [
            Danger("runs-other-code", sentence, at)
            for at, word in enumerate(argv)
            if at and word is not None and pattern.search(word)
        ][:1]
    named = _without_values(argv, entry) if entry.output_operand is not None or entry.setting is not None else []
    if entry.output_operand is not None and len(named) >= entry.output_operand:
        found.append(Danger("writes-file", f"{name} writes to its last argument", named[-1]))
    if entry.setting is not None:
        found += [
            Danger("writes-file", f"{name} changes a setting of the machine", at)
            for at in named
            if entry.setting.fullmatch(argv[at] or "")
        ][:1]
    return found + _of_subcommand(argv, name, entry)


def is_examined(entry: ProgramEntry) -> bool:
    """True if somebody has examined the options of a program."""
    patterns = (entry.runs_text, entry.output_operand, entry.setting)
    options = (entry.runs, entry.writes, entry.must_name, entry.runs_operand)
    below = any(each.writes for each in entry.commands.values())
    return any(options) or any(each is not None for each in patterns) or below


def options_that_rules_must_name(argv: Words, name: str) -> list[Danger]:
    """Return the dangers that only allow rules consider: everyday options, and options with a suspicious name."""
    entry = entry_of(name)
    found = _options(argv, name, entry, entry.must_name, "writes-file")
    if entry.runs_operand:
        found += [Danger("runs-other-code", "", at) for at, _ in first_words(argv)[:1]]
    for at, word in enumerate(argv):
        if not at or word is None or not word.startswith("--") or word in _ONLY_NAMED_ALIKE:
            continue
        if word == "--":
            break
        if _GENERIC_RUNS.fullmatch(word):
            found.append(Danger("runs-other-code", f"{word.partition('=')[0]} may run or load something else", at))
        elif _GENERIC_WRITES.fullmatch(word):
            found.append(Danger("writes-file", f"{word.partition('=')[0]} may write a file", at))
    return found


def _options(argv: Words, name: str, entry: ProgramEntry, options: tuple[str, ...], kind: str) -> list[Danger]:
    """Return a danger for each of these options in a command."""
    if not options:
        return []
    found: list[Danger] = []
    # all of them, not the first: a rule that names one option must not cover the next
    effect = "run or load something else" if kind == "runs-other-code" else "write a file, or change a setting"
    for at, word in enumerate(argv):
        if not at or word is None:
            continue
        if word == "--":
            break
        # `tar xIf …`: the first word of tar and ar is a bundle of options even without a dash
        bundled = name in {"tar", "ar"} and at == 1 and not word.startswith("-")
        if any(_is("-" + word if bundled else word, option, name, entry) for option in options):
            # the risk of crontab itself says it better
            sentence = "" if name == "crontab" else f"{word.partition('=')[0]} makes `{name}` {effect}"
            runs = kind == "runs-other-code"
            found.append(Danger("runs-other-code", sentence, at) if runs else Danger("writes-file", sentence, at))
    return found


def _is(word: str, option: str, name: str, entry: ProgramEntry) -> bool:
    if option.startswith("--"):
        given = word.partition("=")[0]
        shortest = 3 if entry.abbreviates else 5  # dashes included; `npx --no` is no beginning of `--node-options`
        begins = len(given) >= shortest and given.startswith("--") and option.startswith(given)
        return given == option or (begins and shortens_options(name))
    if len(option) == 2:
        bundles = bool(entry.options) and not entry.single_dash
        return option[1] in letters(word, _valued(entry)) and (bundles or word.startswith(option))
    # options such as `-javaagent:x` or `-exec`; Go accepts them with two dashes as well
    return word.startswith(option) or (word.startswith("--") and word[1:].partition("=")[0] == option)


def _valued(entry: ProgramEntry) -> str:
    """The letters of the options with a value, after which the rest of the word is that value."""
    if entry.single_dash:
        return ""
    return "".join(name[1] for name, option in entry.options.items() if len(name) == 2 and option.value != "none")


def _without_values(argv: Words, entry: ProgramEntry) -> list[int]:
    valued = _valued(entry)
    found: list[int] = []
    takes = False
    for at, word in enumerate(argv):
        if not at:
            continue
        if takes:
            takes = False
        elif word is not None and word.startswith("-") and word != "-":
            takes = len(word) == 2 and word[1] in valued
        else:
            found.append(at)
    return found


def _of_subcommand(argv: Words, name: str, entry: ProgramEntry) -> list[Danger]:
    if not any(each.writes for each in entry.commands.values()):
        return []
    for index, subcommand in first_words(argv):
        below = entry.commands.get(subcommand)
        for at in range(index + 1, len(argv) if below else 0):
            word = argv[at]
            if word is not None and below and any(
                word == option or (option.startswith("-") and word.startswith(option) and not word.startswith("--"))
                or word.startswith(option + "=")
                for option in below.writes
            ):  # fmt: skip
                return [Danger("writes-file", f"{word} makes {name} {subcommand} write or run something", at)]
    return []
