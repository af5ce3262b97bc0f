"""The built-in list and the sandbox: which of its programs need none, and which cannot work in one."""

from collections.abc import Sequence

_PROGRAMS = frozenset(
    ": arch b2sum base32 base64 basename cat cd cksum cmp comm cut date dirname echo expand expr factor false fmt fold "
    "head id join logname ls md5sum nl nproc od paste pwd readlink realpath rev seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum sleep stat sum tac tail tr true tsort tty uname unexpand users wc "
    "whoami".split()
)
"""They have no language of their own, start nothing, load nothing, and read no settings of a project.

What the built-in list says about their options and operands holds in addition: it is asked first.
"""

_BEYOND = frozenset(
    "az docker dmesg flatpak gcloud gh helm hostnamectl ifconfig kubectl localectl loginctl nerdctl nmcli nvidia-smi "
    "oc ollama podman rabbitmqctl redis-cli resolvectl screen snap systemctl timedatectl tmux".split()
)
"""They show what another process, another machine or a device tells them, which every sandbox keeps away.

Run in one they would only fail, and be asked the second time.
"""

_DIRECTORIES = frozenset({"", "/bin", "/usr/bin"})


def needs_more_than_a_sandbox(argv: Sequence[str]) -> bool:
    """Whether the program of a command cannot show anything without a socket or a device."""
    return argv[0].rpartition("/")[2] in _BEYOND


def plainly_looks(argv: Sequence[str]) -> bool:
    """Whether the program of a command that the built-in list allows could not do anything else if it wanted to."""
    directory, _, name = argv[0].rpartition("/")
    return name in _PROGRAMS and directory in _DIRECTORIES
