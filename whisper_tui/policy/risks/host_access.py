"""Commands that reach other machines, or this machine beyond files: privileges, services, processes, terminals."""

import posixpath
import re

from whisper_tui.policy.commands.argv import (
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    short_or_long,
    valued_letters,
)
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.policy.commands.special_wrappers import tmux_command, tmux_commands
from whisper_tui.policy.risks.call_patterns import find_calls
from whisper_tui.programs.entries import entry_of

_QUIET = frozenset({"openssl", "getent", "resolvectl"})


def uses_network(argv: Words, name: str) -> bool:
    """True if a command connects to other machines."""
    if name in _QUIET:
        # these three mostly work locally: only some of their subcommands connect
        return "s_client" in argv or "s_server" in argv or "hosts" in argv
    return entry_of(name).network


def reaches_network(argv: Words, name: str) -> bool:
    """True if a command may connect to other machines, as subcommands do of programs that mostly work on this one."""
    if len(argv) == 2 and argv[1] in {"--version", "--help", "-h", "version", "help"}:
        return False
    return uses_network(argv, name) or any(find_calls("connects", argv, name))


def curl(argv: Words) -> list[Danger]:
    """curl: writing files, sending data, reading its options from a file."""
    valued = valued_letters(entry_of("curl"))
    methods, options = _method(argv, valued), _curl_option(argv, valued)
    # `-X POST -d DATA` is told once, by the data
    return [*(danger for danger in methods if danger.id not in {each.id for each in options}), *options]


def _method(argv: Words, valued: str = "") -> list[Danger]:
    """Return the danger of the method of a request: `-X DELETE`, `--request=PUT`, `--method POST`."""
    for index, word in before_end_of_options(argv):
        bundle = letters(word, valued)
        following = argv[index + 1] if index + 1 < len(argv) else None
        if bundle.endswith("X"):
            method = word[len(bundle) + 1 :] or following
        elif long_option(word, "request", "method") and len(word) > 4:
            method = word.partition("=")[2] or following
        else:
            continue
        if (method or "").upper() == "DELETE":
            return [Danger("destructive", f"Asks a server to delete something (`{argv[0]} {word}`)", index)]
        if (method or "").upper() in {"PUT", "POST", "PATCH"}:
            return [Danger("sends-data", f"Sends data to a server (`{argv[0]} {word}`)", index)]
    return []


def http_method(argv: Words) -> list[Danger]:
    """`http DELETE URL` and `xh PUT URL`: the method is the first word."""
    for index, word in first_words(argv):
        if word == "DELETE":
            return [Danger("destructive", f"Asks a server to delete something (`{argv[0]} DELETE`)", index)]
        if word in {"PUT", "POST", "PATCH"}:
            return [Danger("sends-data", f"Sends data to a server (`{argv[0]} {word}`)", index)]
    return []


def _curl_option(argv: Words, valued: str) -> list[Danger]:
    """Return the first option of curl that writes a file, sends data or reads further options."""
    for index, word in before_end_of_options(argv):
        bundle = letters(word, valued)
        if set(bundle) & set("oOcDJ") or long_option(
            word, "output", "output-dir", "remote-name", "remote-name-all", "cookie-jar", "dump-header", "trace",
            "trace-ascii", "stderr", "libcurl", "etag-save", "hsts", "alt-svc",
        ):  # fmt: skip
            return [Danger("writes-file", f"Writes a file (`curl {word}`)", index)]
        # a configuration file may hold any option, and an engine is a shared library
        if "K" in bundle or long_option(word, "config", "engine"):
            sentence = f"Reads options from a file, or loads an engine (`curl {word}`)"
            return [Danger("runs-other-code", sentence, index)]
        if set(bundle) & set("dFT") or long_option(
            word, "data", "data-binary", "data-raw", "data-urlencode", "data-ascii", "form", "form-string", "json",
            "upload-file",
        ):  # fmt: skip
            return [Danger("sends-data", f"Sends data to a server (`curl {word.partition('=')[0]}`)", index)]
    return []


def wget(argv: Words) -> list[Danger]:
    """wget: writing files, sending data, running or reading settings."""
    valued = valued_letters(entry_of("wget"))
    # -X of wget excludes directories
    methods = [danger for danger in _method(argv) if (argv[danger.word] or "").startswith("--")]
    return [*methods, *_wget_option(argv, valued)]


def _wget_option(argv: Words, valued: str) -> list[Danger]:
    for index, word in before_end_of_options(argv):
        bundle = letters(word, valued)
        if set(bundle) & set("oOaP") or long_option(
            word, "output-document", "output-file", "append-output", "directory-prefix", "save-cookies", "warc-file",
            "hsts-file", "rejected-log",
        ):  # fmt: skip
            # `wget -O -` prints the download
            sentence = "" if _prints(argv, index) else f"Writes a file (`wget {word}`)"
            return [Danger("writes-file", sentence, index)]
        if "e" in bundle or "i" in bundle or long_option(word, "execute", "use-askpass", "config", "input-file"):
            sentence = f"Runs settings, or reads addresses from a file (`wget {word}`)"
            return [Danger("runs-other-code", sentence, index)]
        if long_option(word, "post-data", "post-file", "body-data", "body-file"):
            return [Danger("sends-data", f"Sends data to a server (`wget {word.partition('=')[0]}`)", index)]
    return []


def _prints(argv: Words, index: int) -> bool:
    word = argv[index] or ""
    return word.endswith("O-") or (word.endswith("O") and argv[index + 1 : index + 2] == ("-",))


def other_user(argv: Words, name: str) -> str:
    """Return the user as whom sudo, su and their like run a command."""
    for at, word in enumerate(argv[1:], start=1):
        if word is None or not word.startswith("-"):
            # the first operand of su and its like is the user
            return word or "another user" if entry_of(name).user_first else "root"
        if name != "su" and word in {"-u", "--user"}:
            return (argv[at + 1] if at + 1 < len(argv) else None) or "another user"
        if name == "su" and word in {"-c", "--command", "-s", "--shell"}:
            return "root"
        if word.startswith("--user="):
            return word.partition("=")[2]
    return "root"


def other_place(argv: Words, name: str) -> str:
    """Return the place in which ssh, docker and their like run a command, as the end of a sentence."""
    place = entry_of(name).place
    if place != "another machine":
        return f"in {place} (`{name} {argv[1]}`)" if len(argv) > 1 and argv[1] else f"in {place} (`{name}`)"
    skip, valued = False, valued_letters(entry_of(name))
    for word in argv[1:]:
        if skip or word is None or word.startswith("-"):
            skip = word is not None and not skip and len(word) == 2 and word[1] in valued
            continue
        user, _, host = word.rpartition("@")
        return f"on {host}" + (f" as {user}" if user else "")
    return f"on {place} (`{name}`)"


CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
_HOST_OPTIONS = re.compile(
    r"--privileged(?:=true)?|--(?:pid|ipc|uts|userns|network|net|cgroupns)=host|--cap-add=(?:ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|"
    r"DAC_READ_SEARCH)|--security-opt=(?:seccomp|apparmor|label)[=:](?:unconfined|disable)|--device=.*",
    re.IGNORECASE,
)
_PERSISTS = "Starts something that runs later or in the background, without approval"
_INTO_TERMINAL = "Types into a terminal, perhaps into the one in which you approve commands"
_STARTS_SERVICES = frozenset("start restart enable reenable edit link daemon-reload set-property unmask preset".split())
_HOST_DIRECTORIES = frozenset("/ // ~ /etc /root /home /var /usr /boot /proc /sys /dev /run /var/run".split())
"""Directories with which a container gets the host. `//` is one of them because `normpath` keeps it, as POSIX wants."""

_SYSTEM_DIRECTORIES = frozenset("/ // /etc /usr /bin /lib /root /home".split())


def tmux_keys(argv: Words) -> list[Danger]:
    """`tmux send-keys` and what pastes: keystrokes for whatever runs in a pane."""
    for at, words in tmux_commands(tuple(argv)) or [(1, tuple(argv[1:]))]:
        if tmux_command(words[0] or "") in {"send-keys", "paste-buffer", "send-prefix", "set-buffer", "load-buffer"}:
            return [Danger("keystroke-injection", _INTO_TERMINAL, at)]
    return []


def screen_keys(argv: Words) -> list[Danger]:
    """`screen -X stuff` and its like: keystrokes for whatever runs in a window."""
    types = any(word in {"stuff", "paste", "exec", "readreg"} for word in argv)
    return [Danger("keystroke-injection", _INTO_TERMINAL, argv.index("-X"))] if "-X" in argv and types else []


def synthetic_keys(argv: Words) -> list[Danger]:
    """`xdotool` and its like: keystrokes for the desktop."""
    return [Danger("keystroke-injection", "Types into the focused window, as if you did", len(argv) - 1)]


def container(argv: Words) -> list[Danger]:
    """`--privileged`, the host's files, sockets or processes: root on the host."""
    for at, word in enumerate(argv):
        if not at or word is None:
            continue
        before = argv[at - 1] or ""
        joined = f"{before}={word}" if before.startswith("--") and "=" not in before else word
        if _HOST_OPTIONS.fullmatch(word) or _HOST_OPTIONS.fullmatch(joined):
            return [_root_access(joined, at)]
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
            return [_root_access(f"-v {value}" if "," not in value else f"--mount {value}", at)]
    return []


def _root_access(option: str, at: int) -> Danger:
    return Danger("privilege", f"Gives a container root access to this machine (`{option}`)", at)


def _mounts_host(value: str) -> bool:
    if "docker.sock" in value or "containerd.sock" in value or "podman.sock" in value:
        return True
    found = re.search(r"(?:src|source)=([^,]*)", value)
    source = found[1] if found else value.partition(":")[0]
    source = posixpath.normpath(source) if source.startswith("/") else source
    return source in _HOST_DIRECTORIES


def persists(argv: Words) -> list[Danger]:
    """Commands whose purpose is to start something later or in the background."""
    return [Danger("persistence", _PERSISTS, min(1, len(argv) - 1))]


def crontab(argv: Words) -> list[Danger]:
    """`crontab`, unless it only lists."""
    # `-r` removes all jobs, which is another danger
    sentence = "" if "-r" in argv else "Schedules commands that run later, without approval (`crontab`)"
    return [] if "-l" in argv else [Danger("persistence", sentence, min(1, len(argv) - 1))]


def at_job(argv: Words) -> list[Danger]:
    """`at` and `batch`, unless they only list."""
    return (
        []
        if any(word in {"-l", "-c", "-V"} for word in argv)
        else [Danger("persistence", f"Schedules commands that run later, without approval (`{argv[0]}`)", 0)]
    )


def systemctl(argv: Words) -> list[Danger]:
    """`systemctl`: subcommands that start a service, now or at boot."""
    return [
        Danger("persistence", f"Starts or changes a service (`systemctl {word}`)", at)
        for at, word in first_words(argv)
        if word in _STARTS_SERVICES
    ]


def launchctl(argv: Words) -> list[Danger]:
    """`launchctl`: subcommands that start a service, now or at login."""
    verbs = {"load", "bootstrap", "start", "enable", "submit", "kickstart"}
    return [
        Danger("persistence", f"Starts or changes a service (`launchctl {word}`)", at)
        for at, word in first_words(argv)
        if word in verbs
    ]


def permissions(argv: Words) -> list[Danger]:
    """`chmod`: setuid, writable for everybody, or recursive."""
    for index, word in enumerate(argv[1:], start=1):
        if word is None:
            continue
        # the fourth digit from the right holds setuid (4), setgid (2) and sticky (1)
        if re.fullmatch(r"[2467][0-7]{3}|0[2467][0-7]{3}", word) or re.search(r"[ug+]\+?[rwx]*s", word):
            return [Danger("privilege", f"Sets the setuid or setgid bit (`chmod {word}`)", index)]
        if re.fullmatch(r"0?[0-7][0-7][2367]", word) or (
            re.search(r"(?:^|[,augo])[ao]?[+=][rxX]*w", word) and "u+w" not in word
        ):
            return [Danger("privilege", f"Makes files writable for everybody (`chmod {word}`)", index)]
        if "R" in letters(word) or long_option(word, "recursive"):
            return [Danger("destructive", "Changes the permissions of a directory tree (`chmod -R`)", index)]
    return []


def owner(argv: Words) -> list[Danger]:
    """`chown` and `chgrp` of directory trees."""
    at = short_or_long(argv, "R", ("recursive",))
    return [] if at is None else [Danger("destructive", f"Changes the owner of a directory tree (`{argv[0]} -R`)", at)]


def kernel_module(argv: Words) -> list[Danger]:
    """Programs that load code into the kernel."""
    return [Danger("privilege", "Changes kernel code", len(argv) - 1)]


def mount(argv: Words) -> list[Danger]:
    """`mount` and its like. Without operands they only list."""
    if not operands(argv) and not any(word in {"-a", "--all"} for word in argv):
        return []
    return [Danger("privilege", "Changes the mounted file systems of this machine", len(argv) - 1)]


def unpack(argv: Words) -> list[Danger]:
    """`unzip -d /`, `tar -C /`: extracting over the files of the system."""
    for at, word in enumerate(argv):
        before = argv[at - 1] if at else None
        if not at or word is None:
            continue
        target = word if before in {"-d", "-C", "--directory"} else None
        if target is None and word.startswith(("-C", "-d")) and len(word) > 2:
            target = word[2:]
        if word.startswith("--directory="):
            target = word.partition("=")[2]
        if target is not None and posixpath.normpath(target) in _SYSTEM_DIRECTORIES:
            return [Danger("destructive", f"Extracts an archive over the files of the system ({target})", at)]
        if word in {"-P", "--absolute-names", "-:"}:
            return [Danger("writes-file", f"Lets the archive write anywhere (`{word}`)", at)]
    return []


def kill(argv: Words) -> list[Danger]:
    """`kill` of every process, of the own group, or of the init process."""
    named = [word for word in argv[1:] if word is not None]
    targets = [word for position, word in enumerate(named) if position > 0 or not word.startswith("-")]
    for index, word in enumerate(argv[1:], start=1):
        # -1 is every process, 0 the own group, 1 the init process; as the first word, -1 is a signal
        if word in {"-1", "1", "0"} and word in targets:
            whom = {"-1": "every process of this user", "0": "its own process group", "1": "the init process"}[word]
            return [Danger("ends-processes", f"Kills {whom} (`kill {word}`)", index)]
    return []


def kill_by_name(argv: Words) -> list[Danger]:
    """`pkill` and `killall`, which kill by name."""
    return (
        [Danger("ends-processes", f"Kills every process that matches, whoever started it (`{argv[0]}`)", len(argv) - 1)]
        if len(argv) > 1
        else []
    )
