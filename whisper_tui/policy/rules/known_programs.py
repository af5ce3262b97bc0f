"""The programs of which a table says what their words may do, so that a rule may name them alone (decision 9)."""

from collections.abc import Sequence

from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.read_only_programs import check_of
from whisper_tui.policy.commands.special_wrappers import SPECIAL
from whisper_tui.policy.commands.spellings import usual_name
from whisper_tui.policy.commands.wrappers import BUILTINS, runner_of, wrapper_of
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.risks.command_dangers import is_checked
from whisper_tui.programs.entries import entry_of


def is_known(word: str) -> bool:
    """True if something is known of a program, or if it is a file that its path names."""
    name = program_name(word)
    return "/" in word or any(_is_known_name(each) for each in (usual_name(name)[0], name))


def _is_known_name(name: str) -> bool:
    entry = entry_of(name)
    only_reads = entry.reads is not None or entry.shows or check_of(name) or name == "git"
    runs_others = name in SPECIAL or wrapper_of(name) or runner_of(name) or entry.shell
    told = entry.says_little or entry.everyday or name in BUILTINS or is_checked(name) or is_interpreter(name)
    return bool(only_reads or runs_others or told)


def says_too_little(words: Sequence[str]) -> bool:
    """True if the words of a rule name nothing but a program of which nothing is known."""
    return len(words) == 1 and not is_known(words[0])
