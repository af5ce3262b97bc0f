"""The dangers of one command: by its program, by what it wraps, and by words that an unknown program may run."""

import re
from collections.abc import Callable, Iterable

from whisper_tui.policy.commands.argv import Danger, Words, program_name
from whisper_tui.policy.commands.read_only_list import only_reads
from whisper_tui.policy.commands.unwrap import InnerCommand, unwrap
from whisper_tui.policy.commands.words_of_input import starter
from whisper_tui.policy.commands.wrapper_files import own_files
from whisper_tui.policy.commands.wrappers import RUNS_FILE, StandardInput
from whisper_tui.policy.risks import code_execution, destructive, git_dangers, host_access
from whisper_tui.policy.risks.dangerous_options import (
    dangerous_options,
    is_examined,
    options_that_rules_must_name,
)
from whisper_tui.policy.risks.host_access import uses_network
from whisper_tui.policy.risks.secret_commands import prints_secrets
from whisper_tui.policy.risks.telling_verbs import telling_verbs
from whisper_tui.policy.shell.syntax import Script
from whisper_tui.programs.entries import entry_of

_CHECKS: dict[str, Callable[[Words], list[Danger]]] = {
    "rm": destructive.remove,
    "grm": destructive.remove,
    "rmdir": destructive.remove_directory,
    "find": destructive.find,
    "gfind": destructive.find,
    "dd": destructive.disk,
    "chmod": host_access.permissions,
    "chown": host_access.owner,
    "chgrp": host_access.owner,
    "sed": code_execution.sed,
    "gsed": code_execution.sed,
    "sort": destructive.sort,
    "base64": destructive.encoded,
    "base32": destructive.encoded,
    "git": git_dangers.git,
    "awk": code_execution.awk,
    "gawk": code_execution.awk,
    "mawk": code_execution.awk,
    "nawk": code_execution.awk,
    "curl": host_access.curl,
    "wget": host_access.wget,
    **dict.fromkeys(("http", "https", "httpie", "xh", "xhs", "curlie"), host_access.http_method),
    "kill": host_access.kill,
    "pkill": host_access.kill_by_name,
    "killall": host_access.kill_by_name,
    "skill": host_access.kill_by_name,
    "mv": destructive.overwrites_device,
    "cp": destructive.overwrites_device,
    "truncate": destructive.truncates,
}

_HOST_CHECKS: dict[str, Callable[[Words], list[Danger]]] = {
    "tmux": host_access.tmux_keys,
    "screen": host_access.screen_keys,
    "xdotool": host_access.synthetic_keys,
    "ydotool": host_access.synthetic_keys,
    "wtype": host_access.synthetic_keys,
    **dict.fromkeys(host_access.CONTAINERS, host_access.container),
    "crontab": host_access.crontab,
    "at": host_access.at_job,
    "batch": host_access.at_job,
    "systemctl": host_access.systemctl,
    "systemd-run": host_access.persists,
    "launchctl": host_access.launchctl,
    "update-rc.d": host_access.persists,
    "chkconfig": host_access.persists,
    "insmod": host_access.kernel_module,
    "modprobe": host_access.kernel_module,
    "rmmod": host_access.kernel_module,
    "kexec": host_access.kernel_module,
    "bpftool": host_access.kernel_module,
    "mount": host_access.mount,
    "umount": host_access.mount,
    "swapon": host_access.mount,
    "losetup": host_access.mount,
    "unzip": host_access.unpack,
    "tar": host_access.unpack,
    "bsdtar": host_access.unpack,
}
"""Checks that hold for programs that run others as well: `docker run --privileged` is one whatever runs inside."""

_BUILTINS = frozenset(
    "source . export declare typeset readonly local set shopt enable alias hash trap complete compgen bind "
    "ulimit".split()
)


def is_checked(name: str) -> bool:
    """True if something is known of the words or options of a program."""
    entry = entry_of(name)
    told = (entry.words_are_data, entry.harm, entry.opens, entry.deletes, entry.interrupts, entry.network)
    return any(told) or name in _CHECKS.keys() | _HOST_CHECKS.keys() | _BUILTINS or is_examined(entry)


def dangers_of_program(argv: Words, name: str) -> list[Danger]:
    """Return the dangers of a command whose program, without its directory, is `name`."""
    # `rm --help` does nothing, and people allow it without a thought
    if destructive.only_help(argv):
        return []
    found: list[Danger] = []
    entry = entry_of(name)
    harm = entry.harm or ("Overwrites a disk" if name.startswith("mkfs") else "")
    if harm:
        found.append(Danger("destructive", f"{harm} (`{name}`)", 0))
    if entry.opens and len(argv) > 1:
        found.append(Danger("runs-other-code", f"Opens a file or an address in another program (`{name}`)", 1))
    if check := _CHECKS.get(name):
        found += check(argv)
    if code_execution.is_interpreter(name):
        found += code_execution.interpreter(argv, name)
    if name in _BUILTINS:
        found += code_execution.builtin_code(argv, name)
    found += dangerous_options(argv, name)
    found += destructive.database(argv, name)
    for offset, program in code_execution.programs_of(argv, name):
        behind = (*destructive.deletes(argv[offset:], program), *prints_secrets(argv[offset:], program))
        found += (danger._replace(word=danger.word + offset) for danger in behind)
    return found


def _host_dangers(argv: Words, name: str) -> list[Danger]:
    check = _HOST_CHECKS.get(name)
    # without words, these three read what to do from their input; the others only print their usage
    if check is None or (len(argv) < 2 and name not in {"at", "batch", "crontab"}):
        return []
    return check(argv)


def words_are_data(name: str | None) -> bool:
    """True if a program never runs its operands. Its options that do run something are dangers of their own."""
    return entry_of(name).words_are_data


def _operands_are_data(name: str) -> bool:
    """True if the first words of a program are never subcommands."""
    entry = entry_of(name)
    return entry.shell == "posix" or (entry.words_are_data and not entry.has_subcommands)


def may_run_words(argv: Words, name: str) -> list[Danger]:
    """Return the danger of an unknown program with words that would be a dangerous command (decision 9)."""
    if words_are_data(name):
        return []
    for at in range(1, len(argv)):
        word = argv[at]
        if word is None or word.startswith("-") or "=" in word:
            continue
        inner = program_name(word)
        starts_others = entry_of(inner).privilege or entry_of(inner).shell == "posix"
        # unknown programs often run their words: `mytool rm -rf x` counts as rm
        if (starts_others and at + 1 < len(argv)) or (len(argv) - at > 1 and dangers_of_program(argv[at:], inner)):
            sentence = f"`{name}` is not known, and may run `{inner}` with the words behind it"
            return [Danger("runs-other-code", sentence, at)]
    return []


EVALUATING = frozenset(
    "test [ printf read let declare typeset local readonly unset mapfile readarray getopts wait".split()
)
"""Builtins that evaluate a part of their arguments as code."""

_CODE = re.compile(r"\$\(|`")


def runs_while_expanding(text: str, scripts: Iterable[Script], commands: Iterable[InnerCommand]) -> bool:
    """True if bash runs or opens something while it expands words: in a substitution or in a value."""
    scripts, commands = tuple(scripts), tuple(commands)
    if any(script.substitutions for script in scripts):
        return True
    # `${x@P}` evaluates a value that may come from anywhere, so it counts without `$(` in the text
    if "@P}" in text and any(script.evaluations for script in scripts):
        return True
    values = (word for command in commands for word in command.argv if word is not None)
    if not _CODE.search(text) and not any(_CODE.search(word) for word in values):
        return False  # quotes can break up in the text what is one word to the builtin
    return any(script.evaluations for script in scripts) or any(evaluates(command) for command in commands)


def evaluates(command: InnerCommand) -> bool:
    """True if a builtin would evaluate one of its arguments as code."""
    if command.name not in EVALUATING:
        return False
    # a subscript is arithmetic to these builtins: `test -v "a[$(id)]"` runs id
    return any(word is not None and "[" in word[1:] for word in command.argv[1:])


def dangers_of_command(command: InnerCommand) -> list[Danger]:
    """Return the dangers of one command of a call."""
    found = _dangers_of(command) if command.argv else []
    words = tuple(word for word in command.argv if word is not None)
    if found and words == command.argv and gives_words_to_readers(words):
        # a rule for `find` does not say that contents may be shown
        return [danger._replace(sentence="") for danger in found]
    return found


def _dangers_of(command: InnerCommand) -> list[Danger]:
    name = command.name
    if name is None:
        return [Danger("runs-other-code", "Runs a program whose name is in a variable, or comes from a command", 0)]
    # a wrapper is judged by what it runs; xargs also turns input into arguments
    found = [] if command.runs_others and name != "xargs" else dangers_of_program(command.argv, name)
    found += _files_of_wrapper(command, name)
    if entry_of(name).privilege:
        found.append(Danger("privilege", f"Runs as {host_access.other_user(command.argv, name)} (`{name}`)", 0))
    found += _host_dangers(command.argv, name)
    if command.runner is not None:
        sentence = f"Runs a program of the project or of a package (`{name}`)"
        found.append(Danger("runs-other-code", sentence, command.runner))
    if name == "xargs" and command.runs_others:
        found.append(Danger("runs-other-code", "Appends words of its input to a command (`xargs`)", 0))
    if entry_of(name).repeats:
        found.append(Danger("runs-other-code", f"Runs a command repeatedly (`{name}`)", 0))
    if command.opaque is not None:
        said = command.opaque.removeprefix("it ")
        found.append(Danger("opaque", said[:1].upper() + said[1:], _script(command)))
    if command.runs_others and entry_of(name).place:
        place = host_access.other_place(command.argv, name)
        found.append(Danger("runs-other-code", f"Runs {place}", len(command.argv) - 1))
    if evaluates(command):
        # `printf '\033[31m'` has a bracket as well; only `-v` names a variable, whose subscript is evaluated
        harmless = name == "printf" and "-v" not in command.argv
        sentence = "" if harmless else f"`{name}` evaluates one of its arguments as code"
        found.append(Danger("runs-other-code", sentence, len(command.argv) - 1))
    found += _of_words(command, name, found)
    if not found and command.starts and not command.runs_others:
        found.append(Danger("runs-other-code", f"Runs a command from its arguments (`{name}`)", 0))
    if not found and not command.runs_others:
        found += may_run_words(command.argv, name)
    if uses_network(command.argv, name) and None in command.argv:
        # a call's own risk about the network names these words
        found.append(Danger("network", "", 0))
    return found


def gives_words_to_readers(argv: tuple[str, ...]) -> bool:
    """True for `xargs wc -l`, `find … -exec grep x {} +` and the like: whatever the words are, they are only read."""
    started = starter(argv)
    if started is None or not only_reads(argv, git_is_neutral=False):
        return False
    return not any(dangers_of_argv(each.argv, has_input=True) for each in started.commands)


def _of_words(command: InnerCommand, name: str, found: Iterable[Danger]) -> list[Danger]:
    """Return the dangers of a pattern, or of a subcommand that no table knows."""
    if command.runs_others:
        return []
    if name in {"rm", "grm", "unlink"} and command.patterns:
        return destructive.remove_matching(command.patterns)
    known = {"destructive", "deletes-files", "interrupts", "ends-processes", "opaque"}
    if command.opaque is not None or any(danger.id in known for danger in found) or destructive.only_help(command.argv):
        return []
    for offset, program in code_execution.programs_of(command.argv, name):
        if _operands_are_data(program) or (not offset and code_execution.is_interpreter(name)):
            continue
        if verbs := telling_verbs(command.argv[offset:], program):
            return [danger._replace(word=danger.word + offset) for danger in verbs]
    return []


def _files_of_wrapper(command: InnerCommand, name: str) -> list[Danger]:
    """Return one danger for the files that a wrapper writes itself, at the first word that names one."""
    files = own_files(command.argv).written if command.starts else ()
    written = [path for path in files if path not in {"/dev/null", "-"}]
    if not written:
        return []
    ending = written[0] or "\0"
    at = next((at for at, word in enumerate(command.argv) if at and (word or "").endswith(ending)), len(command.argv))
    return [Danger("writes-file", f"`{name}` itself writes {written[0] or 'a file whose name is in a variable'}", at)]


def dangers_of_argv(argv: tuple[str, ...], *, has_input: bool) -> list[Danger]:
    """Return the dangers of a literal command; `has_input` tells whether it has any input."""
    unwrapped = unwrap(argv, StandardInput(has_input=has_input))
    if unwrapped is None:
        return dangers_of_command(InnerCommand(argv=argv, span=(0, 0))) + options_that_rules_must_name(
            argv, program_name(argv[0])
        )
    runs = bool(unwrapped.commands or unwrapped.texts)
    has_own_effect = not runs or unwrapped.has_own_effect
    found = dangers_of_command(
        InnerCommand(
            argv=argv,
            span=(0, 0),
            opaque=unwrapped.opaque,
            runs_others=not has_own_effect,
            starts=runs,
            runner=unwrapped.runner,
        )
    )
    if not runs:
        return found + options_that_rules_must_name(argv, program_name(argv[0]))
    inner = unwrapped.commands[0] if unwrapped.commands else ()
    # the words behind a runner are judged at their index in the whole command, so that a rule can name them: `uv run
    # pytest`
    offset = len(argv) - len(inner)
    words = tuple(word for word in inner if word is not None)
    if unwrapped.runner is None or unwrapped.texts or not 0 < offset < len(argv) or words[1:] != argv[offset + 1 :]:
        # an index after the last word: no prefix of a rule can reach it
        return [*found, Danger("runs-other-code", "Runs another command", len(argv))]
    behind = dangers_of_argv(words, has_input=has_input)
    return found + [danger._replace(word=danger.word + offset) for danger in behind]


def _script(command: InnerCommand) -> int:
    """Return the index of the script that a shell reads, or that after the last word if no rule can name it."""
    if command.opaque != RUNS_FILE:
        return len(command.argv)
    return next((at for at, word in enumerate(command.argv) if at and word and word[0] not in "-+"), len(command.argv))


def is_fork_bomb(script: Script, commands: Iterable[InnerCommand]) -> bool:
    """True if a function starts itself in the background, which makes a fork bomb."""
    return any(command.background and command.argv[:1] and command.argv[0] in script.functions for command in commands)
