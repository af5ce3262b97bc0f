"""`config`: the path of the configuration file, an editor for it, and a check of it and of the rules."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.subcommand import BAD_CONFIGURATION, DONE, Options, Subcommands, complain, home_of
from whisper_tui.model.errors import Refused, Unavailable, WhisperError

if TYPE_CHECKING:
    from whisper_tui.system.state_directory import Directories

NEW_FILE = "# The configuration of whisper_tui. Every key is optional; docs/configuration.md describes them.\n"
USUAL_EDITOR = "vi"


def add_config(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "config",
        "print the path of the configuration file, edit it, or check it",
        _config,
        details="edit opens it in VISUAL or EDITOR and checks it afterwards. The supervisor reads it when it starts: "
        "whisper-tui restart applies changes.",
    )
    parser.add_argument(
        "action", choices=("path", "edit", "check"), help="print its path, open it in an editor, or report problems"
    )


def _config(options: Options) -> int:
    home = home_of(options)
    path = _path(home)
    match options.action:
        case "path":
            sys.stdout.write(f"{path}\n")
            return DONE
        case "edit":
            _edit(home, path)
    return _check(home, path)


def _path(home: "Directories") -> Path:
    from whisper_tui.config.configuration import CONFIGURATION_FILE

    return Path(home.config) / CONFIGURATION_FILE


def _edit(home: "Directories", path: Path) -> None:
    """Open the file in the user's editor. Raises `WhisperError`."""
    import subprocess

    from whisper_tui.cli.commands.manage_rules import check_outside
    from whisper_tui.config.private_files import write_private

    # The file decides what runs without approval, so a supervised command must not change it this way either.
    check_outside("config edit", home)
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or USUAL_EDITOR)
    if not path.exists():
        # Created here: under a group-writable umask, an editor's new file would be refused as changeable by others.
        write_private(path, NEW_FILE)
    try:
        code = subprocess.run([*words, str(path)], check=False).returncode
    except OSError as error:
        raise Unavailable(f"{words[0]} cannot be started: {error.strerror}", hint="Set EDITOR to an editor") from error
    if code:
        raise Refused(f"{words[0]} ended with exit code {code}", hint=f"The file is {path}")


def _check(home: "Directories", path: Path) -> int:
    """Report the problems of the configuration file and of the rules file."""
    problems = _problems(home)
    for problem in problems:
        complain(problem)
    if problems:
        return BAD_CONFIGURATION
    sys.stdout.write(f"{path} is valid\n" if path.exists() else f"There is no {path}: the defaults apply\n")
    return DONE


def _problems(home: "Directories") -> list[str]:
    from whisper_tui.config import load
    from whisper_tui.config.rule_files import RuleFiles
    from whisper_tui.tui.commands.all_commands import keymap

    try:
        configuration = load(home)
    except WhisperError as error:
        return [error.sentence()]
    rules = RuleFiles(home, configuration.rules).saved()
    keys = keymap(configuration.cockpit.keymap, configuration.keys)
    found = [problem for problem in (configuration.rules.broken, rules.broken) if problem]
    stray = Path(home.config).parent / _path(home).name
    # With --home DIR, people put the file into DIR itself, where it would be ignored without a word.
    if Path(home.config).name == "config" and stray.exists():
        found.append(f"{stray} is not read: the configuration file is {_path(home)}")
    return found + list(keys.problems)
