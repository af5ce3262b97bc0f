"""Programs whose words are certainly no commands, and what the words of all others may be."""

from whisper_tui.policy.dangers.command import dangers
from whisper_tui.policy.dangers.finding import Danger, Words
from whisper_tui.policy.wrappers.peeled import program_name
from whisper_tui.policy.wrappers.table import SHELLS

WORDS_ARE_DATA = frozenset(
    ": [ alias base32 base64 basename bat bg break brew bunzip2 bzcat bzip2 cargo cat cd chgrp chmod chown cksum "
    "clear cmp column comm continue cp csplit curl cut date dd declare df diff dig dir dircolors dirname dnf docker "
    "du echo egrep exa expand export expr eza factor false fg fgrep file find fmt fold free gh git glab glow go "
    "grep groups gzip gunzip head helm hexdump hostid hostname iconv id install ip jobs join jq kill killall "
    "kubectl less ln local locate logger logname ls lsof md5sum mkdir mkfifo mktemp more mv netstat nl npm "
    "nproc numfmt od oc paste pathchk pgrep ping pip pip3 pkill podman popd pr printenv printf ps pushd pwd read "
    "readarray readlink readonly realpath rg rm rmdir rsync scp sed seq sha1sum sha256sum sha512sum shift shuf "
    "sleep sort split ss stat strings stty sum svn sync systemctl tac tail tar tee terraform test touch tr tree "
    "true truncate tsc tsort tty type typeset umask unalias uname unexpand uniq unlink unset unxz unzip uptime "
    "users vdir wait wc wget whatis whereis which who whoami xxd xz yes yq zcat zgrep zip zstd apt apt-get yum "
    "pacman snap journalctl launchctl pytest eslint ruff mypy black prettier".split()
)
"""Programs for which an operand is a name, a text or a subcommand, and never a command that they run.

Their options that do run something are dangers of their own.
"""

_STARTERS = SHELLS | {"sudo", "doas", "su", "pkexec"}


def may_run(argv: Words, name: str) -> list[Danger]:
    """Whether a program that nothing is known about is followed by what would be dangerous as a command."""
    if name in WORDS_ARE_DATA:
        return []
    for at in range(1, len(argv)):
        word = argv[at]
        if word is None or word.startswith("-") or "=" in word:
            continue
        inner = program_name(word)
        if (inner in _STARTERS and at + 1 < len(argv)) or (len(argv) - at > 1 and dangers(argv[at:], inner)):
            sentence = f"{name} is not known here, and may run {inner} with the words behind it"
            return [Danger("runs-other-code", sentence, at)]
    return []
