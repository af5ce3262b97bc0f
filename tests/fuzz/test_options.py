"""Programs of the built-in list with random arguments: allowed calls are run, and must have no side effects."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz.coverage import Coverage
from tests.fuzz.jail import Jail, programs
from tests.fuzz.profile import LONG, fuzzed
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.policy.commands.read_only_list import helpers_of, listed_forms
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.programs.entries import UNKNOWN, Option, ProgramEntry, entry_of, program_names
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.runs.sandbox_profile import SYSTEM_PATH, minimal_environment
from whisper_tui.supervisor.runs.start_order import read_only_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not programs("strace"), reason="strace is not installed, and nothing else sees it all"),
]

_LEFT_OUT = frozenset(["cd", "sleep", "true", "false"])
"""Programs that only wait, and a word of the shell."""

_TIMES = 3
"""With so many subcommands of git each option is tried alone; many have hundreds in common."""

OPERANDS = [
    "data", "sub", "sub/more", "sub/link", "list", "opts", "@opts", "../home/secret", "../home", "PWN", "new", ".",
    "-", "--", "/etc/hostname", "/dev/null", "1", "5", "a", "%s", "+1", "+%Y", "a=b", "SECRET_TOKEN", "e", "axe",
    "aux", "x:y", "host:data", "touch PWN", "s/a/b/w PWN", "1e touch PWN", 'BEGIN{system("touch PWN")}',
    "{print $1}", "p", "-exec", "touch", ";", "-delete", "-fprint", "-name", "*", "HEAD", "main", "--list", "--get",
    "core.pager", "core.fsmonitor", "remote.x.url", "v1", "-x", "a.tgz", "a.gz", "a.zip", "a.o", "bash", "/bin/ls",
]  # fmt: skip
VALUES = [
    *OPERANDS, "always", "auto", "never", "json", "0", "2", "1k", "1,2", "utf-8", "%G?", "%(signature)", "%(refname)",
    "%h %GK", "pid,args", "environ", "name", "size", "x", ":", ",", "posix", "full", "now", "2020-01-01", "text",
    "elf64-x86-64", "file://data", "http://127.0.0.1:9/", "127.0.0.1",
]  # fmt: skip
NASTY = [
    "-o", "--output=PWN", "--output", "-w", "-i", "-e", "-f", "-c", "-s", "-r", "-R", "-L", "-v", "-d", "-x", "-t",
    "-tf", "-exec", "--files0-from=list", "--files-from=list", "--compress-program=./data", "--pre=./data",
    "--in-place", "--file=opts", "-fopts", "--plugin=./data", "--ext-diff", "--textconv", "--no-index", "-O./data",
    "--open-files-in-pager=touch", "-D", "-m", "--set=now", "-I./data", "--to-command=touch", "--checkpoint=1",
    "--checkpoint-action=exec=touch", "-C", "--config=opts", "--format=%G?", "-F", "--follow", "--dereference",
    "-z", "-Z", "-u", "-X", "-S", "--recurse-submodules", "--expression=1e", "--import=data",
]  # fmt: skip

_CHECKED = {
    "tput": (),
    "echo": ("-n", "-e", "-E"),
    "test": (),
    "ip": ("-0", "-4", "-6", "-s", "-d", "-j", "-p", "-o", "-N", "-br", "-json"),
}
"""Options of programs whose harmless calls a function tells, and no table."""


@cache
def calls() -> dict[str, tuple[tuple[tuple[str, ...], ProgramEntry], ...]]:
    """By installed program: the first words of its harmless calls, and the options that may stand with them."""
    found: dict[str, list[tuple[tuple[str, ...], ProgramEntry]]] = {}
    for words, form_ in listed_forms():
        found.setdefault(words[0], []).append((words[1:], form_))
    for program, flags in _CHECKED.items():
        found.setdefault(program, []).append(((), _with_flags(*flags)))
    for program in program_names():
        entry = entry_of(program)
        # a script is a wrapper of this machine, which says nothing about the program of that name elsewhere
        if entry and entry.tells_version and (program in found or not is_script(program)):
            found.setdefault(program, []).append(((), _with_flags("--version", "--help")))
    ((_, certificates),) = found["openssl"][:1]
    found["openssl"] += [((subcommand,), certificates) for subcommand in ("x509", "req", "crl")]
    return {program: tuple(found[program]) for program in programs(*sorted(found.keys() - _LEFT_OUT))}


def is_script(program: str) -> bool:
    """True if an interpreter runs a program."""
    path = shutil.which(program, path=SYSTEM_PATH)
    if path is None:
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _with_flags(*names: str) -> ProgramEntry:
    return replace(UNKNOWN, options={name: Option("", "none") for name in names})


def _letters(made: ProgramEntry, *forms: str) -> list[str]:
    return [name[1] for name, each in made.options.items() if len(name) == 2 and each.value in forms]


def listed(made: ProgramEntry) -> tuple[str, ...]:
    """Every option of a form once; an equals sign stands for a value behind it, two for one in the next word."""
    # the table writes `-20` and its like as -NUMBER
    options = {name: each.value for name, each in made.options.items() if name != "-NUMBER"}
    return (
        *(name for name, form in options.items() if form != "needed"),
        *(f"{name}=" for name, form in options.items() if form == "needed" or (form != "none" and len(name) > 2)),
        *(f"{name}==" for name, form in options.items() if form == "needed"),
    )


@cache
def options_of(program: str) -> tuple[str, ...]:
    """The options that a program names in its own help."""
    asked = [program, "--help"]
    try:
        done = subprocess.run(asked, capture_output=True, stdin=subprocess.DEVNULL, timeout=5, check=False, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return ()
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return tuple(dict.fromkeys(re.findall(r"(?<![\w-])--?[A-Za-z0-9][A-Za-z0-9-]*=?", text)))


def given_with(option: str, value: str) -> list[str]:
    """The words of an option of `listed` with a value."""
    name = option.rstrip("=")
    if option.endswith("=="):
        return [name, value]
    if option.endswith("="):
        return [f"{name}={value}" if name.startswith("--") else name + value]
    return [name]


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A harmless call of a program, with more of its own options, alone, in bundles or with a value, and operands.

    In half of the calls stand words that are on no list besides: options of the program's help, and others.
    """
    program = draw(st.sampled_from([*calls(), *["git"] * 12]))
    first, made = draw(st.sampled_from(calls()[program]))
    words = [program, *(draw(st.sampled_from(OPERANDS)) if word == "*" else word for word in first)]
    options, wild = listed(made), draw(st.booleans())
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 7 if wild else 4)):
            case 0 | 1 if options:
                words += given_with(draw(st.sampled_from(options)), draw(st.sampled_from(VALUES)))
            case 2 if flags := _letters(made, "none"):
                letters = "".join(draw(st.lists(st.sampled_from(flags), min_size=1, max_size=3)))
                last = draw(st.sampled_from(_letters(made, "needed") or [""]))
                words += [f"-{letters}{last}", *([draw(st.sampled_from(VALUES))] if last else [])]
            case 5 if known := options_of(program):
                option = draw(st.sampled_from(known))
                option = option[: draw(st.integers(3, len(option)))] if len(option) > 3 else option
                words += [option + draw(st.sampled_from(VALUES)) if option.endswith("=") else option]
            case 6:
                short = "".join(option[1] for option in options_of(program) if len(option) == 2) or "a"
                words.append("-" + "".join(draw(st.lists(st.sampled_from(short), min_size=1, max_size=3))))
                words[-1] += draw(st.sampled_from(["", *OPERANDS]))
            case 7:
                words.append(draw(st.sampled_from(NASTY)))
            case _:
                words.append(draw(st.sampled_from(OPERANDS)))
    return words


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with Jail.made() as made:
        made.make_repository()
        yield made


@pytest.fixture(scope="module")
def coverage(request: pytest.FixtureRequest) -> Iterator[Coverage]:
    """Says at the end which of the list's programs and options have run."""
    counted = Coverage({program: {o for _, made in calls()[program] for o in listed(made)} for program in calls()})
    yield counted
    manager = request.config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled():
        request.config.get_terminal_writer().line("\n" + counted.words())


def harm_if_allowed(jail: Jail, words: list[str]) -> str | None:
    """Run an allowed call in the environment of such calls, and return its side effects. None: it is not allowed."""
    spec = CommandSpec(command=Argv(program=words[0], args=tuple(words[1:])), cwd=str(jail.workspace))
    verdict, resolved = judge_alone(
        spec, Rules(read_only=True), jail.session, root=str(jail.workspace), own=(str(jail.home),), now=0
    )
    if verdict.kind != "allow":
        return None
    environment = minimal_environment(jail.session, verdict.sandbox) | {"HOME": str(jail.home)}
    helpers = {"git"} if words[0] == "git" else set(helpers_of((words[0],)))
    return jail.harm(
        words, traced=True, environment=environment | read_only_environment(spec, resolved), helpers=helpers
    )


@pytest.mark.timeout(3600)
@fuzzed(60)
@given(words=commands())
def test_an_allowed_call_starts_nothing_writes_nothing_and_shows_no_secret(
    jail: Jail, coverage: Coverage, words: list[str]
) -> None:
    harm = harm_if_allowed(jail, words)
    assume(harm is not None)
    coverage.ran(words)
    assert harm == ""


@pytest.mark.skipif(not LONG, reason="it takes some minutes")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", calls())
@pytest.mark.one_in(2)
def test_each_listed_option_alone_starts_nothing_and_writes_nothing(
    jail: Jail, coverage: Coverage, program: str
) -> None:
    found = []
    tried: Counter[str] = Counter()
    for first, made in calls()[program]:
        begun = [program, *("data" if word == "*" else word for word in first)]
        for option in ("", *listed(made)):
            if program == "git" and tried[option] == _TIMES and option:
                continue
            tried[option] += 1
            values = ("1", "data") if "=" in option else ("",)
            for value, operand in product(values, ([], ["data"])):
                words = [*begun, *(given_with(option, value) if option else ()), *operand]
                harm = harm_if_allowed(jail, words)
                if harm is not None:
                    coverage.ran(words)
                if harm:
                    found.append((words, harm))
    assert not found, "\n".join(f"{' '.join(words)}: {harm}" for words, harm in found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sort", "-o", "/dev/full", "data"], "writing"),
        (["sh", "-c", "/bin/true; true"], "started"),
        (["timeout", "1", "nosuchprogram"], "started"),
        (["mkdir", "sub"], "changed"),
        (["bash", "-c", "echo > /dev/tcp/127.0.0.1/9"], "connected"),
        (["git", "log", "--format=%G?"], "changed"),
        (["git", "log", "--format=%H"], ""),
        (["cat", "data"], ""),
    ],
)
def test_the_jail_sees_what_leaves_no_trace_in_files(jail: Jail, words: list[str], said: str) -> None:
    harm = jail.harm(words, traced=True)
    assert said in harm
    assert bool(said) == bool(harm)
