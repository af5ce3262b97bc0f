"""The directory in which a wrapper runs its command: its own, unless its words lead to another one."""

from whisper_tui.policy.commands.argv import Words, parse_options, program_name, short_or_long
from whisper_tui.policy.commands.wrappers import WRAPPERS

_ELSEWHERE = {
    "env": ("-C", "--chdir"),
    "sudo": ("-D", "--chdir", "-i", "--login", "-R", "--chroot"),
    "unshare": ("-w", "--wd", "-R", "--root"),
}
"""Options with which the command runs in another directory."""

_ALWAYS = frozenset("chroot nsenter systemd-run run0 flatpak-spawn lxc-attach lxc-execute".split())
"""Wrappers whose commands run in another directory, or where its name means another one."""

_LOGINS = frozenset({"su", "runuser"})


def runs_elsewhere(argv: Words) -> bool:
    """True if a wrapper runs its command in a directory that is not its own, as far as its words are known."""
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    if name in _LOGINS:
        valued = WRAPPERS[name].options.valued
        return None in argv or "-" in argv or short_or_long(argv, "l", ("login",), valued) is not None
    if name not in _ELSEWHERE:
        return name in _ALWAYS
    parsed = parse_options(argv, 1, WRAPPERS[name].options)
    return parsed is None or parsed.has(*_ELSEWHERE[name])
