"""The machines that a command would talk to, by its words and by the configuration files that name them."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from whisper_tui.effects.changes import Changes, printable
from whisper_tui.effects.operands import parse_words
from whisper_tui.effects.text_walk import Step
from whisper_tui.effects.transfer_programs import is_remote, transfer_words
from whisper_tui.model.effects import HostEffect
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.policy.risks.host_access import uses_network
from whisper_tui.programs.entries import entry_of
from whisper_tui.system import host_files

LARGEST_CONFIGURATION = 1 << 20

Lister = Callable[[Step, Changes], None]


def record_hosts(step: Step, changes: Changes) -> bool:
    """Record the machines that a command talks to. Returns False if it is not known to talk to any."""
    name = step.name or ""
    lister = _LISTERS.get(name) or (_one_host if entry_of(name).host_first else None)
    if lister is not None:
        lister(step, changes)
        return True
    registry = next(
        (where for programs, verbs, where in _REGISTRIES if name in programs and _may_be(step, verbs)), None
    )
    if registry is not None:
        _add(changes, registry, name, source="unless it is configured otherwise")
        return True
    if uses_network(tuple(step.words), name):
        changes.unknown(step, "hosts", f"which machines {name} talks to is not known before it runs")
        return True
    return False


def _add(changes: Changes, host: str, program: str, *, source: str = "") -> None:
    entry = HostEffect(host=printable(host), program=program, elsewhere=is_elsewhere(host), source=printable(source))
    changes.marks |= {"network"} if entry.elsewhere else set()
    if entry not in changes.hosts and len(changes.hosts) < 100:
        changes.hosts.append(entry)


def _may_be(step: Step, verbs: Iterable[str]) -> bool:
    """True if one of these is the subcommand, whichever options before it take a value."""
    return any(word in verbs for _, word in first_words(step.words))


def _is_surely(step: Step, verbs: Iterable[str]) -> bool:
    """True if the subcommand is one of these, whichever options before it take a value."""
    possible = first_words(step.words)
    return bool(possible) and all(word in verbs for _, word in possible)


def record_remote_host(step: Step, changes: Changes, url: str | None, program: str, source: str = "") -> str | None:
    """Record the machine of a remote's URL. Returns its host, or None for a directory of this machine."""
    if url is None:
        changes.unknown(step, "hosts", "the URL is only known when it runs")
        return None
    host = host_of_url(url)
    if host is not None:
        _add(changes, host, program, source=source)
    return host


def host_of_url(url: str) -> str | None:
    """The host of a URL or of `user@host:path`. None: it is a path of this machine."""
    match = re.match(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?(\[[^]]*\]|[^/:?#]*)", url, re.IGNORECASE)
    if match is not None:
        return match[1].strip("[]").lower() or None
    match = re.match(r"(?:[^/@:]+@)?([^/:]+):(?!//)", url)
    return match[1].lower() if match else None


def is_elsewhere(host: str) -> bool:
    """True unless a name or address is this machine's own."""
    if host in {"localhost", "::1", "0.0.0.0"} or host.endswith(".localhost"):  # noqa: S104 it is compared
        return False
    return not re.fullmatch(r"127(?:\.\d+){1,3}", host) and host != host_files.host_name().lower()


def _home(step: Step) -> str:
    return step.environment.get("HOME") or host_files.home()


def _configuration(path: str) -> str:
    """The text of a configuration file; empty if it cannot be read."""
    content, _ = host_files.read_regular(host_files.realpath(path), LARGEST_CONFIGURATION)
    return "" if content is None else content.decode("utf-8", "replace")


def _urls(step: Step, changes: Changes) -> None:
    args = transfer_words(step)
    given = [*args.operands, *args.all("url")]
    for url in given:
        if url is None:
            changes.unknown(step, "hosts", "the URL is only known when it runs")
            continue
        # curl and wget take a name without a scheme for a URL.
        host = host_of_url(url if "://" in url else f"http://{url}")
        if host:
            _add(changes, host, step.name or "")
    if not given:
        changes.unknown(step, "hosts", "the URLs are in a file or in its input")
    proxy = args.value("x", "proxy")
    if proxy:
        _add(
            changes,
            host_of_url(proxy if "://" in proxy else f"http://{proxy}") or proxy,
            step.name or "",
            source="proxy",
        )


def _ssh(step: Step, changes: Changes) -> None:
    args = parse_words(step.words, step.name or "")
    target = args.operands[0] if args.operands else None
    if target is None:
        changes.unknown(step, "hosts", "the machine is only known when it runs")
        return
    host = host_of_url(target) if "://" in target else target.rpartition("@")[2].partition(":")[0]
    _add_ssh(step, changes, host or target)
    for jump in args.all("J"):
        for each in (jump or "").split(","):
            _add_ssh(step, changes, each.rpartition("@")[2].partition(":")[0])


def _add_ssh(step: Step, changes: Changes, host: str) -> None:
    """Record a host of ssh; its configuration may give a name another address."""
    config = os.path.join(_home(step), ".ssh", "config")
    found, matches = None, False
    for line in _configuration(config).splitlines():
        key, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if key.lower() == "host":
            matches = host in value.split()
        elif key.lower() == "match":
            matches = False
        elif key.lower() == "hostname" and matches and found is None:
            found = value.strip().replace("%h", host)
    if host:
        _add(changes, found or host, step.name or "", source=f"{host} in ~/.ssh/config" if found else "")


def _copies(step: Step, changes: Changes) -> None:
    words = transfer_words(step).operands
    for word in words:
        if word is None:
            changes.unknown(step, "hosts", "a path is only known when it runs and may be on another machine")
        elif is_remote(word):
            host = host_of_url(word) if "://" in word else word.partition(":")[0].rpartition("@")[2]
            _add_ssh(step, changes, host or word)
            if word is words[-1]:
                changes.unknown(step, "hosts", "which files it replaces on the other machine is not known")


_DATABASES = {
    **dict.fromkeys(("psql", "pg_dump", "pg_restore"), "PGHOST"),
    **dict.fromkeys(("mysql", "mysqldump"), "MYSQL_HOST"),
    **dict.fromkeys(("mariadb", "redis-cli", "mongosh", "mongo"), ""),
}
"""Clients of databases, and the variable that names the machine."""


def _database(step: Step, changes: Changes) -> None:
    name = step.name or ""
    variable = _DATABASES[name]
    args = parse_words(step.words, name)
    for word in args.operands:
        host = host_of_url(word) if word and "://" in word else None
        if host:
            _add(changes, host, name)
            return
    if args.has("h", "host"):
        host = args.value("h", "host")
        if host is None:
            changes.unknown(step, "hosts", "the machine is only known when it runs")
        else:
            _add(changes, "localhost" if host.startswith("/") else host, name)
        return
    named = step.environment.get(variable)
    _add(changes, named or "localhost", name, source=f"${variable}" if named else "its default")


def _kubernetes(step: Step, changes: Changes) -> None:
    args = parse_words(step.words, step.name or "")
    if step.name == "kubectl" and _is_surely(
        step, {"config", "version", "completion", "kustomize", "explain", "options"}
    ):
        return
    if (server := args.value("server") or args.value("s")) and step.name == "kubectl":
        _add(changes, host_of_url(server) or server, "kubectl")
        return
    named = args.value("kubeconfig") or step.environment.get("KUBECONFIG") or os.path.join(_home(step), ".kube/config")
    path = os.path.join(step.directory or "/", named.split(":")[0])
    text = _configuration(path)
    context = args.value("context", "kube-context") or _yaml_value(text, "current-context")
    server = _server_of(text, context) if context else None
    if context is None:
        changes.unknown(step, "hosts", f"the context is not known: {named} could not be read, or names none")
        return
    host = host_of_url(server) if server else None
    _add(changes, host or "", step.name or "", source=f"context {context}")


def _yaml_value(text: str, key: str) -> str | None:
    match = re.search(rf"^{key}:[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)
    return match[1].strip("'\"") or None if match else None


def _server_of(text: str, context: str) -> str | None:
    """The server of a context in a file of kubectl: its cluster, then that cluster's server."""
    cluster = next((each.get("cluster") for each in _entries(text, "contexts") if each.get("name") == context), None)
    return next((each.get("server") for each in _entries(text, "clusters") if each.get("name") == cluster), None)


def _entries(text: str, key: str) -> Iterator[dict[str, str]]:
    """The entries of one list of a YAML file, each with its own scalar values and those one level below."""
    section = re.search(rf"^{key}:[ \t]*\n((?:[ \t-].*\n?|\n)*)", text, re.MULTILINE)
    entry: dict[str, str] = {}
    for line in section[1].splitlines() if section else ():
        if line.startswith(("- ", "  - ")) and entry and re.match(r" {0,2}- ", line):
            yield entry
            entry = {}
        match = re.match(r"[ -]*([\w-]+):[ \t]*(\S+)[ \t]*\Z", line)
        if match:
            entry[match[1]] = match[2].strip("'\"")
    if entry:
        yield entry


def _docker(step: Step, changes: Changes) -> None:
    name = step.name or ""
    args = parse_words(step.words, name)
    host = args.value("H", "host") if args.has("H", "host") else step.environment.get("DOCKER_HOST")
    context = args.value("c", "context") or step.environment.get("DOCKER_CONTEXT")
    source = "$DOCKER_HOST" if host and not args.has("H", "host") else ""
    directory = step.environment.get("DOCKER_CONFIG") or os.path.join(_home(step), ".docker")
    if not host:
        context = context or _json_text(_configuration(os.path.join(directory, "config.json")), "currentContext")
        if context and context != "default":
            # The name of the directory is the digest of the name of the context.
            key = sha256(context.encode("utf-8", "replace")).hexdigest()
            meta = _configuration(os.path.join(directory, "contexts", "meta", key, "meta.json"))
            host, source = _json_text(meta, "Endpoints", "docker", "Host"), f"context {context}"
            if host is None:
                changes.unknown(step, "hosts", f"the context {context} could not be read")
                return
    if host and not host.startswith(("unix:", "npipe:", "fd:")):
        _add(changes, host_of_url(host) or host, name, source=source)
    if _may_be(step, {"pull", "push", "login", "search"}):
        image = next((word for word in args.operands[1:] if word), "")
        first = image.partition("/")[0]
        _add(changes, first if "." in first or ":" in first else "docker.io", name, source="the registry of the image")


def _json_text(text: str, *keys: str) -> str | None:
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value else None


def _one_host(step: Step, changes: Changes) -> None:
    """Programs of which the first operand is a machine."""
    args = parse_words(step.words, step.name or "")
    host = args.operands[0] if args.operands else None
    if host is None or args.has("l"):
        changes.unknown(step, "hosts", "the machine is only known when it runs")
    else:
        _add(changes, host_of_url(host) or host, step.name or "")


_REGISTRIES: Sequence[tuple[frozenset[str], frozenset[str], str]] = (
    (frozenset({"npm", "pnpm", "yarn", "bun"}),
     frozenset("install i add ci publish update upgrade outdated view".split()),
     "registry.npmjs.org"),
    (frozenset({"npx", "bunx"}), frozenset(), "registry.npmjs.org"),
    (frozenset({"pip", "pip3", "pipx", "uv", "poetry"}), frozenset("install download add sync publish upgrade".split()),
     "pypi.org"),
    (frozenset({"cargo"}), frozenset("install add update publish search fetch".split()), "crates.io"),
    (frozenset({"gem", "bundle"}), frozenset(["install", "update", "push", "add"]), "rubygems.org"),
    (frozenset({"gh"}), frozenset("pr issue repo release run workflow api gist".split()), "github.com"),
)  # fmt: skip
_LISTERS: Mapping[str, Lister] = {
    "curl": _urls,
    "wget": _urls,
    "ssh": _ssh,
    "mosh": _ssh,
    "sftp": _ssh,
    "ssh-copy-id": _ssh,
    "scp": _copies,
    "rsync": _copies,
    **dict.fromkeys(_DATABASES, _database),
    "kubectl": _kubernetes,
    "oc": _kubernetes,
    "helm": _kubernetes,
    "k9s": _kubernetes,
    "docker": _docker,
    "docker-compose": _docker,
}
