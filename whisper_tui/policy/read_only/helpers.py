"""Programs that others start, by name, wherever PATH leads: scripts, and what unpacks, searches or checks for them."""

from collections.abc import Iterable

_HELPERS = {
    "zcat": ("sh", "gzip"),
    "gzcat": ("sh", "gzip"),
    "egrep": ("sh", "grep"),
    "fgrep": ("sh", "grep"),
    "tar": ("gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress"),
    "which": ("sh",),
    "shasum": ("perl",),
    "gh": ("git",),
    "git": ("sh", "ssh", "gpg", "less"),
    "pip": ("python3",),
    "pip3": ("python3",),
    "gem": ("ruby",),
    "pygmentize": ("python3",),
    "aws": ("python3",),
    "az": ("python3", "sh"),
    "gcloud": ("python3", "sh"),
    "conda": ("python3",),
    "nohup": ("sh",),
    "dpkg": ("dpkg-query",),
    "lspci": ("gzip",),
    "apropos": ("man",),
    "whatis": ("man",),
    "timeout": ("sh",),
}


def helpers_of(names: Iterable[str]) -> tuple[str, ...]:
    """The programs that these could start in turn."""
    return tuple(dict.fromkeys(helper for name in sorted(names) for helper in _HELPERS.get(name, ())))
