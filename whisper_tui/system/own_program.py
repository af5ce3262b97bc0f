"""Command lines that start this installation, whatever the directory and the variables are that they start with.

A project may have a `queue.py`, and its settings a `PYTHONPATH`: neither must reach our processes (decision 4).
"""

# Only what Python has loaded anyway: the hook imports this for every command.
import os
import sys
from contextlib import suppress

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(_PACKAGE)
"""The directory that holds this package."""
_MAIN = os.path.join(_PACKAGE, "__main__.py")
_MODULE = "-m"
_CACHE_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How the file begins that marks the root of a cache (bford.info/cachedir)."""
_ISOLATED = ("-I",)
_WITH_USER_SITE = ("-E", "-P")
"""Isolated, but for the directory of the user's own packages."""


def own_program() -> list[str]:
    """Return the words that start `whisper-tui`."""
    # By its path and not by its name, so that a process always starts the version that it is itself.
    return [sys.executable, *(_WITH_USER_SITE if _is_linked_by_user() else _ISOLATED), _MAIN]


def own_module(name: str) -> list[str]:
    """Return the words that run a module of this package."""
    return [*own_program(), _MODULE, name]


def own_script(path: str) -> list[str]:
    """Return the words that run a file of this package as a script, which may import installed packages."""
    of_user = _user_site() == ROOT or _is_linked_by_user()
    return [sys.executable, *(_WITH_USER_SITE if of_user else _ISOLATED), path]


def installed_program() -> list[str]:
    """Return the words that start `whisper-tui`, and that stay the same when Python is upgraded in place."""
    beside = os.path.join(os.path.dirname(sys.executable), "whisper-tui")
    is_installed = any(_provides(directory) for directory in _site_packages())
    return [sys.executable, *_ISOLATED, beside] if is_installed and _is_our_script(beside) else own_program()


def cache_with_this_program() -> str:
    """Return the cache in which this installation is. Empty: it is in none, so its path lasts until it is removed.

    `uvx` and `pipx run` start programs from environments in a cache, which is emptied without asking.
    """
    # The tag in the environment itself says only that backups may leave it out; every environment of uv has one.
    parent = os.path.dirname(sys.prefix)
    while parent != os.path.dirname(parent):
        with suppress(OSError), open(os.path.join(parent, "CACHEDIR.TAG"), "rb") as tag:
            if tag.read(len(_CACHE_TAG)) == _CACHE_TAG:
                return parent
        parent = os.path.dirname(parent)
    return ""


def installed_from() -> str:
    """Return the directory, package or address from which this was installed. Without a record: the package's name."""
    import json
    from importlib.metadata import distribution
    from urllib.parse import unquote, urlsplit

    record = json.loads(distribution("whisper-tui").read_text("direct_url.json") or "{}")
    address = str(record.get("url", "whisper-tui"))
    if address.startswith("file:"):
        return unquote(urlsplit(address).path)
    return f"{record['vcs_info']['vcs']}+{address}" if "vcs_info" in record else address


def start_of_this_process() -> list[str]:
    """Return the words that started this process, without its arguments, if it was started isolated. Else: none."""
    words = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return words if is_isolated() and os.path.isabs(words[0]) else []


def is_isolated() -> bool:
    """True if neither the directory nor the variables of Python have chosen what this process imports."""
    return bool(sys.flags.isolated or (sys.flags.ignore_environment and sys.flags.safe_path))


def add_root() -> None:
    """Let a process that runs `__main__.py` by its path import what is installed beside the package."""
    # Isolated, Python looks into no user's own packages; if this one is there, so is what it needs.
    if ROOT not in sys.path:
        sys.path.append(ROOT)


def forget_foreign_paths() -> None:
    """Import nothing more from the current directory and from `PYTHONPATH`: a workspace may have a `queue.py`."""
    if is_isolated():
        return
    library = os.path.dirname(os.__file__)
    kept = {ROOT, library, f"{library}/lib-dynload", _user_site(), *_site_packages()}
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    foreign = {"", os.curdir, *named}
    with suppress(OSError):  # The current directory may be gone; then nothing can be imported from it.
        foreign |= {os.path.abspath(path) for path in (os.curdir, *named)}
    sys.path[:] = [path for path in sys.path if path not in foreign or path in kept]


def _is_our_script(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(2000)
    except OSError:
        return False
    return text.startswith("#!") and "python" in text and "from whisper_tui" in text


def _is_linked_by_user() -> bool:
    """True if only the user's own packages name the directory of this package: `pip install --user --editable`."""
    user_site = _user_site()
    if not user_site or user_site == ROOT:
        return False
    return _provides(user_site) and not any(_provides(directory) for directory in _site_packages())


def _provides(directory: str) -> bool:
    """True if this package is in a directory of packages, or is named by a file there."""
    if directory == ROOT:
        return True
    try:
        links = [name for name in os.listdir(directory) if name.endswith(".pth")]
        return any(_names_root(os.path.join(directory, name)) for name in links)
    except OSError:
        return False


def _names_root(link: str) -> bool:
    with open(link, encoding="utf-8", errors="replace") as file:
        return any(line.rstrip() == ROOT for line in file)


def _site_packages() -> list[str]:
    site = sys.modules.get("site")
    return site.getsitepackages() if site is not None else []


def _user_site() -> str:
    """The directory of the user's own packages if Python looks there. Empty: it does not."""
    site = sys.modules.get("site")
    return (site.USER_SITE or "") if site is not None and site.ENABLE_USER_SITE else ""
