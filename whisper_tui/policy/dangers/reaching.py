"""What reaches beyond the command itself: into terminals, onto the host, into services, schedules and the kernel."""

import posixpath
import re
from collections.abc import Callable

from whisper_tui.policy.dangers.finding import Danger, Words, operands
from whisper_tui.policy.wrappers.terminals import tmux_command, tmux_commands

_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
_HOST_OPTIONS = re.compile(
    r"--privileged(?:=true)?|--(?:pid|ipc|uts|userns|network|net|cgroupns)=host|--cap-add=(?:ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|"
    r"DAC_READ_SEARCH)|--security-opt=(?:seccomp|apparmor|label)[=:](?:unconfined|disable)|--device=.*",
    re.IGNORECASE,
)
_PERSISTS = "It starts something that no approval is asked for any more, now or later"
_LEAVES = (
    "start",
    "restart",
    "enable",
    "reenable",
    "edit",
    "link",
    "daemon-reload",
    "set-property",
    "unmask",
    "preset",
)


def reaching(argv: Words, name: str) -> list[Danger]:
    """Everything of this kind, for wrappers as well."""
    check = _CHECKS.get(name)
    return [] if check is None or (len(argv) < 2 and name not in {"at", "batch", "crontab"}) else check(argv)


def _keys_into_terminals(argv: Words) -> list[Danger]:
    for at, words in tmux_commands(tuple(argv)) or [(1, tuple(argv[1:]))]:
        if tmux_command(words[0] or "") in {"send-keys", "paste-buffer", "send-prefix", "set-buffer", "load-buffer"}:
            sentence = "It types into a terminal, perhaps into the one in which you decide"
            return [Danger("keystroke-injection", sentence, at)]
    return []


def _screen(argv: Words) -> list[Danger]:
    stuffs = any(word in {"stuff", "paste", "exec", "readreg"} for word in argv)
    if "-X" in argv and stuffs:
        return [
            Danger(
                "keystroke-injection",
                "It types into a terminal, perhaps into the one in which you decide",
                argv.index("-X"),
            )
        ]
    return []


def _typing(argv: Words) -> list[Danger]:
    return [Danger("keystroke-injection", "It types into whatever window has the focus, as if you did", len(argv) - 1)]


def _container(argv: Words) -> list[Danger]:
    """`--privileged`, the host's files or sockets, its processes: root on the host."""
    sentence = "It gives the container the rights of root on this machine"
    for at, word in enumerate(argv):
        if not at or word is None:
            continue
        before = argv[at - 1] or ""
        joined = f"{before}={word}" if before.startswith("--") and "=" not in before else word
        if _HOST_OPTIONS.fullmatch(word) or _HOST_OPTIONS.fullmatch(joined):
            return [Danger("privilege", sentence, at)]
        value = (
            word.partition("=")[2]
            if word.startswith(("--volume=", "--mount="))
            else word[2:]
            if word[:2] == "-v"
            else ""
        )
        if before in {"-v", "--volume", "--mount"}:
            value = word
        if value and _mounts_host(value):
            return [Danger("privilege", sentence, at)]
    return []


def _mounts_host(value: str) -> bool:
    if "docker.sock" in value or "containerd.sock" in value or "podman.sock" in value:
        return True
    found = re.search(r"(?:src|source)=([^,]*)", value)
    source = found[1] if found else value.partition(":")[0]
    source = posixpath.normpath(source) if source.startswith("/") else source
    return source in {
        "/",
        "//",
        "~",
        "/etc",
        "/root",
        "/home",
        "/var",
        "/usr",
        "/boot",
        "/proc",
        "/sys",
        "/dev",
        "/run",
        "/var/run",
    }


def _persists(argv: Words) -> list[Danger]:
    return [Danger("persistence", _PERSISTS, min(1, len(argv) - 1))]


def _crontab(argv: Words) -> list[Danger]:
    return [] if "-l" in argv else [Danger("persistence", _PERSISTS, min(1, len(argv) - 1))]


def _at(argv: Words) -> list[Danger]:
    return [] if any(word in {"-l", "-c", "-V"} for word in argv) else [Danger("persistence", _PERSISTS, 0)]


def _systemctl(argv: Words) -> list[Danger]:
    return [Danger("persistence", _PERSISTS, at) for at, word in operands(argv)[:1] if word in _LEAVES]


def _launchctl(argv: Words) -> list[Danger]:
    verbs = {"load", "bootstrap", "start", "enable", "submit", "kickstart"}
    return [Danger("persistence", _PERSISTS, at) for at, word in operands(argv)[:1] if word in verbs]


def _kernel(argv: Words) -> list[Danger]:
    return [Danger("privilege", "It loads code into the kernel", len(argv) - 1)]


def _mounting(argv: Words) -> list[Danger]:
    if not operands(argv) and not any(word in {"-a", "--all"} for word in argv):
        return []
    return [Danger("privilege", "It changes which files are where, for everything on this machine", len(argv) - 1)]


def _unpacks(argv: Words) -> list[Danger]:
    """`unzip -d /`, `tar -C /`: over the files of the system."""
    for at, word in enumerate(argv):
        before = argv[at - 1] if at else None
        if not at or word is None:
            continue
        target = word if before in {"-d", "-C", "--directory"} else None
        if target is None and word.startswith(("-C", "-d")) and len(word) > 2:
            target = word[2:]
        if word.startswith("--directory="):
            target = word.partition("=")[2]
        if target is not None and posixpath.normpath(target) in {
            "/",
            "//",
            "/etc",
            "/usr",
            "/bin",
            "/lib",
            "/root",
            "/home",
        }:
            return [Danger("destructive", "It unpacks over the files of the system", at)]
        if word in {"-P", "--absolute-names", "-:"}:
            return [Danger("writes-file", f"{word} lets an archive write where it likes", at)]
    return []


_CHECKS: dict[str, Callable[[Words], list[Danger]]] = {
    "tmux": _keys_into_terminals,
    "screen": _screen,
    "xdotool": _typing,
    "ydotool": _typing,
    "wtype": _typing,
    **dict.fromkeys(_CONTAINERS, _container),
    "crontab": _crontab,
    "at": _at,
    "batch": _at,
    "systemctl": _systemctl,
    "systemd-run": _persists,
    "launchctl": _launchctl,
    "update-rc.d": _persists,
    "chkconfig": _persists,
    "insmod": _kernel,
    "modprobe": _kernel,
    "rmmod": _kernel,
    "kexec": _kernel,
    "bpftool": _kernel,
    "mount": _mounting,
    "umount": _mounting,
    "swapon": _mounting,
    "losetup": _mounting,
    "unzip": _unpacks,
    "tar": _unpacks,
    "bsdtar": _unpacks,
}
