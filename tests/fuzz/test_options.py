"""Programs of the built-in list with options and operands at random: what is allowed is run, and must only look."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz.jail import Jail, programs
from tests.fuzz.profile import fuzzed
from whisper_tui.model.command import Argv, CommandSpec
from whisper_tui.policy.read_only.git import _TABLE as GIT
from whisper_tui.policy.read_only.helpers import helpers_of
from whisper_tui.policy.read_only.judged import _forms
from whisper_tui.policy.read_only.special import SPECIAL
from whisper_tui.policy.rules import Rules
from whisper_tui.supervisor.git_repository import looking_environment
from whisper_tui.supervisor.judging import judge_alone

pytestmark = pytest.mark.skipif(not programs("strace"), reason="strace is not installed, and nothing else sees it all")

_LEFT_OUT = frozenset(
    {"sleep", "true", "false", "cd", "aws", "ip", "journalctl", "nvidia-smi", "vmstat", "rpm", "dmesg"}
)
"""Programs that only wait, that are not programs, and those that talk to the machine rather than to files."""

PROGRAMS = programs(*sorted({*_forms(), *SPECIAL, "git"} - _LEFT_OUT))
_GIT = [*sorted(GIT), "config", "stash", "remote", "worktree", "reflog", "notes", "bundle"]

OPERANDS = [
    "data", "sub", "sub/more", "sub/link", "list", "opts", "@opts", "../home/secret", "../home", "PWN", "new", ".",
    "-", "--", "/etc/hostname", "/dev/null", "1", "5", "a", "%s", "+1", "+%Y", "a=b", "SECRET_TOKEN", "e", "axe",
    "aux", "x:y", "host:data", "touch PWN", "s/a/b/w PWN", "1e touch PWN", 'BEGIN{system("touch PWN")}',
    "{print $1}", "p", "-exec", "touch", ";", "-delete", "-fprint", "-name", "*", "HEAD", "main", "--list", "--get",
    "core.pager", "core.fsmonitor", "remote.x.url", "v1", "-x", "a.tgz",
]  # fmt: skip
NASTY = [
    "-o", "--output=PWN", "--output", "-w", "-i", "-e", "-f", "-c", "-s", "-r", "-R", "-L", "-v", "-d", "-x", "-t",
    "-tf", "-exec", "--files0-from=list", "--files-from=list", "--compress-program=./data", "--pre=./data",
    "--in-place", "--file=opts", "-fopts", "--plugin=./data", "--ext-diff", "--textconv", "--no-index", "-O./data",
    "--open-files-in-pager=touch", "-D", "-m", "--set=now", "-I./data", "--to-command=touch", "--checkpoint=1",
    "--checkpoint-action=exec=touch", "-C", "--config=opts", "--format=%G?", "-F", "--follow", "--dereference",
    "-z", "-Z", "-u", "-X", "-S", "--recurse-submodules", "--expression=1e", "--import=data",
]  # fmt: skip


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


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A program with options that it has or might have, alone, in bundles or with a value, and operands."""
    program = draw(st.sampled_from(PROGRAMS))
    known = options_of(program)
    short = "".join(option[1] for option in known if len(option) == 2) or "a"
    words = [program]
    if program == "git":
        words.append(draw(st.sampled_from(_GIT)))
    form = GIT.get(words[-1]) if program == "git" else _forms().get(program)
    listed = (
        sorted({*form.long, *form.attached, *form.long_valued, *(f"-{each}" for each in form.flags)}) if form else []
    )
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 6)):
            case 0 if known:
                option = draw(st.sampled_from(known))
                words.append(option + draw(st.sampled_from(OPERANDS)) if option.endswith("=") else option)
            case 1:
                words.append("-" + "".join(draw(st.lists(st.sampled_from(short), min_size=1, max_size=3))))
            case 2:
                words.append("-" + draw(st.sampled_from(short)) + draw(st.sampled_from(OPERANDS)))
            case 3:
                words.append(draw(st.sampled_from(NASTY)))
            case 4 if listed:
                words.append(draw(st.sampled_from(listed)))
            case _:
                words.append(draw(st.sampled_from(OPERANDS)))
    return words


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with Jail.made() as made:
        made.make_repository()
        yield made


@pytest.mark.timeout(3600)
@fuzzed(60)
@given(words=commands())
def test_an_allowed_call_starts_nothing_writes_nothing_and_shows_no_secret(jail: Jail, words: list[str]) -> None:
    spec = CommandSpec(command=Argv(program=words[0], args=tuple(words[1:])), cwd=str(jail.workspace))
    environment = {"PATH": os.environ["PATH"], "HOME": str(jail.home)}
    verdict, resolved = judge_alone(
        spec, Rules(read_only=True), environment, root=str(jail.workspace), own=(str(jail.home),), now=0
    )
    assume(verdict.kind == "allow")
    helpers = {*helpers_of((words[0],)), *({"git"} if words[0] == "git" else ())}
    assert jail.harm(words, traced=True, environment=looking_environment(spec, resolved), helpers=helpers) == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sort", "-o", "/dev/full", "data"], "writing"),
        (["sh", "-c", "/bin/true; true"], "started"),
        (["timeout", "1", "nosuchprogram"], "started"),
        (["mkdir", "sub"], "changed"),
        (["bash", "-c", "echo > /dev/tcp/127.0.0.1/9"], "connected"),
        (["cat", "data"], ""),
    ],
)
def test_the_jail_sees_what_leaves_no_trace_in_files(jail: Jail, words: list[str], said: str) -> None:
    harm = jail.harm(words, traced=True)
    assert said in harm
    assert bool(said) == bool(harm)
