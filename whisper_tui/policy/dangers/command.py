"""All dangers of one command, by its program."""

from collections.abc import Callable

from whisper_tui.policy.dangers import code, files, git, network, systems
from whisper_tui.policy.dangers.acting_options import acting_options
from whisper_tui.policy.dangers.finding import Danger, Words

_CHECKS: dict[str, Callable[[Words], list[Danger]]] = {
    "rm": files.remove,
    "grm": files.remove,
    "rmdir": files.remove_directory,
    "find": files.find,
    "gfind": files.find,
    "dd": files.disk,
    "chmod": files.permissions,
    "chown": files.owner,
    "chgrp": files.owner,
    "sed": files.sed,
    "gsed": files.sed,
    "sort": files.sort,
    "base64": files.encoded,
    "base32": files.encoded,
    "git": git.git,
    "awk": code.awk,
    "gawk": code.awk,
    "mawk": code.awk,
    "nawk": code.awk,
    "curl": network.curl,
    "wget": network.wget,
    "kill": systems.kill,
    "pkill": systems.kill_by_name,
    "killall": systems.kill_by_name,
    "skill": systems.kill_by_name,
    "mv": systems.moves_to_nowhere,
    "cp": systems.moves_to_nowhere,
    "truncate": systems.truncates,
}

_ALWAYS = {
    "shred": "It overwrites files so that nothing brings them back",
    "wipe": "It overwrites files so that nothing brings them back",
    "srm": "It overwrites files so that nothing brings them back",
    "unlink": "It deletes a file without asking",
    "mkswap": "It overwrites a disk",
    "fdisk": "It changes the partitions of a disk",
    "sfdisk": "It changes the partitions of a disk",
    "gdisk": "It changes the partitions of a disk",
    "parted": "It changes the partitions of a disk",
    "wipefs": "It overwrites a disk",
    "blkdiscard": "It overwrites a disk",
    "del": "It deletes files",
    "erase": "It deletes files",
    "rd": "It deletes directories",
    "format": "It overwrites a disk",
    "Remove-Item": "It deletes files",
    "shutdown": "It stops the machine",
    "reboot": "It stops the machine",
    "halt": "It stops the machine",
    "poweroff": "It stops the machine",
    "init": "It stops the machine",
    "telinit": "It stops the machine",
    "dropdb": "It deletes a database",
}

_OPENS = frozenset("xdg-open open gio gnome-open kde-open start wslview".split())

_BUILTINS = frozenset(
    "source . export declare typeset readonly local set shopt enable alias hash trap complete compgen bind "
    "ulimit".split()
)


def dangers(argv: Words, name: str) -> list[Danger]:
    """What must be named by a rule before the rule covers it; `name` is the program without its directory."""
    if files.only_help(argv):
        return []
    found: list[Danger] = []
    if name in _ALWAYS or name.startswith("mkfs"):
        found.append(Danger("destructive", _ALWAYS.get(name, "It overwrites a disk"), 0))
    if name in _OPENS and len(argv) > 1:
        found.append(Danger("runs-other-code", "It opens something in another program", 1))
    if check := _CHECKS.get(name):
        found += check(argv)
    if code.has_running_options(name):
        found += code.running_options(argv, name)
    if code.is_interpreter(name):
        found += code.interpreter(argv, name)
    if name in _BUILTINS:
        found += code.builtin_code(argv, name)
    found += acting_options(argv, name)
    found += systems.deletes(argv, name)
    found += systems.database(argv, name)
    return found
