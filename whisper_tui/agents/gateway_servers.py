"""The MCP servers of others in a client's files: put behind the gateway, found there, and taken out again."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from whisper_tui.agents.client_files import (
    DAY_S,
    SERVER,
    InstallRequest,
    Launch,
    Opener,
    is_gateway,
    is_launcher,
    launcher_of,
    plain_of,
)
from whisper_tui.agents.file_entries import Document, Key, value_at
from whisper_tui.agents.findings import Check, DoctorContext, bad, command_line, good, not_isolated, note, replaces
from whisper_tui.model.errors import BadConfiguration

if TYPE_CHECKING:
    from whisper_tui.agents.profile import ServerTable

THROUGH = "--through"


@dataclass(frozen=True)
class GatewayTable:
    """The place in a client's file where its MCP servers stand, and how the client writes them."""

    path: Path
    opener: Opener
    keys: tuple[str, ...]
    timeout: str = "timeout"
    """The key of the time limit of a call."""
    per_second: int = 1000
    """The unit of that limit."""
    listed: bool = False
    """True if the command is a list with the arguments."""
    variables: str = "env"
    """The key of the variables for the server."""
    shared: bool = False
    """True for a file that others share, which is never changed."""
    unasked: Mapping[str, Any] = field(default_factory=dict)
    """The members of an entry that keep the client from asking about the server's tools itself."""

    def words(self, entry: Any) -> list[str]:
        """Return the command line of an entry. Empty: the client starts no program for it."""
        if not isinstance(entry, dict):
            return []
        if not self.listed:
            return command_line(entry.get("command"), entry.get("args", []))
        words = entry.get("command")
        return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else []

    def written(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the members of an entry with a command line."""
        return {"command": [*words]} if self.listed else {"command": words[0], "args": [*words[1:]]}

    def servers(self, plain: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names and entries of the servers of others."""
        found = value_at(plain, self.keys)
        for name, entry in found.items() if isinstance(found, dict) else ():
            words = self.words(entry)
            own = bool(words) and split_wrapped(words) is None and _starts_mcp(words)
            if isinstance(entry, dict) and name != SERVER and not own:
                yield name, entry


def wrapper(launch: Launch, name: str) -> list[str]:
    """Return the words before a server's command line that put it behind the gateway."""
    return [*launch.program, "mcp", *launch.home, THROUGH, name, "--"]


def split_wrapped(words: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the words of any installation's gateway and the server's own ones. None: it is not behind the gateway."""
    if not _starts_mcp(words) or "--" not in words:
        return None
    place = [*words].index("--")
    behind = THROUGH in words[:place] and bool(words[place + 1 :])
    return ([*words[: place + 1]], [*words[place + 1 :]]) if behind else None


def _starts_mcp(words: Sequence[str]) -> bool:
    return any(words[place] == "mcp" and is_launcher(words[:place]) for place in range(1, len(words)))


@dataclass(frozen=True)
class WrappedServer:
    """The entry of a server behind the gateway."""

    proves_install: ClassVar[bool] = True

    table: GatewayTable
    name: str
    before: tuple[str, ...]
    """The words before its command line."""

    @property
    def path(self) -> tuple[Key, ...]:
        """Its place in the file."""
        return (*self.table.keys, self.name)

    @property
    def _added(self) -> dict[str, Any]:
        """The members beside the command line: the client waits for a human, and asks nothing itself."""
        # Only the gateway's own entry has them. Without the gateway there is no server whose tools could be called.
        return {self.table.timeout: DAY_S * self.table.per_second, **self.table.unasked}

    def holds(self, plain: Any) -> bool:
        """True if it is behind the gateway of this installation, and the client waits for a human."""
        entry = value_at(plain, self.path)
        found = split_wrapped(self.table.words(entry))
        if found is None or tuple(found[0]) != self.before:
            return False
        return all(entry.get(key) == value for key, value in self._added.items())

    def found(self, plain: Any) -> "WrappedServer | None":
        """Return the entry as the file has it."""
        found = split_wrapped(self.table.words(value_at(plain, self.path)))
        return None if found is None else replace(self, before=tuple(found[0]))

    def write(self, document: Document) -> None:
        """Put the server behind the gateway. All other members of its entry stay."""
        words = self.table.words(value_at(document.plain(), self.path))
        if not words:
            return
        found = split_wrapped(words)
        own = words if found is None else found[1]
        self._put(document, {**self.table.written([*self.before, *own]), **self._added})

    def remove(self, document: Document, original: Any) -> None:
        """Restore the server's own command line, and the other members of the original."""
        entry = value_at(document.plain(), self.path)
        found = split_wrapped(self.table.words(entry))
        if found is None:
            return
        earlier = value_at(original, self.path)
        earlier = earlier if isinstance(earlier, dict) else {}
        own = self.table.written(found[1])
        if not own.get("args", True) and "args" not in earlier:
            del own["args"]
            document.delete((*self.path, "args"))
        self._put(document, own)
        for key, value in self._added.items():
            if entry.get(key) != value:
                continue
            if key in earlier:
                self._put(document, {key: earlier[key]})
            else:
                document.delete((*self.path, key))

    def _put(self, document: Document, members: dict[str, Any]) -> None:
        for key, value in members.items():
            if value_at(document.plain(), (*self.path, key)) != value:
                document.put((*self.path, key), value)


def wrapped_servers(request: InstallRequest, table: GatewayTable) -> tuple[list[WrappedServer], list[str]]:
    """Return the entries of a table that the gateway can stand before, and notes about the others.

    Raises `BadConfiguration`.
    """
    entries, notes = [], []
    for name, entry in table.servers(plain_of(table.path, table.opener)):
        problem = why_unwrappable(table, name, entry, request.launch)
        if problem is None:
            entries.append(WrappedServer(table, name, tuple(wrapper(request.launch, name))))
        elif request.gateway:
            notes.append(f"The MCP server {name} is left as it is: {problem}")
    return entries, notes


def not_wrapped(table: GatewayTable, plain: Any) -> list[str]:
    """Return the names of the servers of others that are not behind a gateway, and that the client does not trust."""
    return [
        name
        for name, entry in table.servers(plain)
        if split_wrapped(table.words(entry)) is None
        and any(entry.get(key) != value for key, value in table.unasked.items())
    ]


def why_unwrappable(table: GatewayTable, name: str, entry: dict[str, Any], launch: Launch) -> str | None:
    """Return why a server cannot be put behind the gateway. None: it can."""
    if not table.words(entry):
        return "the client starts no program for it"
    if not name.isprintable():
        return "its name holds characters that cannot be printed"
    # They would be set for the gateway as well, and other code could then answer in its place.
    if any(replaces(variable, launch.program) for variable in entry.get(table.variables) or {}):
        return f"its {table.variables} changes what programs load"
    return None


def started_words(entry: Any) -> list[str]:
    """Return the command line of an entry of any client. Empty: the client starts no program for it."""
    if not isinstance(entry, dict):
        return []
    command = entry.get("command")
    if isinstance(command, list) and command:
        return command_line(command[0], [*command[1:]])
    return command_line(command, entry.get("args", []))


def gateway_checks(client: str, tables: Iterable["ServerTable"], context: DoctorContext) -> list[Check]:
    """Say which MCP servers of others in a client's files are behind the gateway, and check that those can start."""
    checks, open_ones = [], dict[Path, list[str]]()
    for table in dict.fromkeys(tables):
        try:
            found = value_at(plain_of(table.file, table.opener), table.place)
        except BadConfiguration:
            continue  # The doctor has named the file already.
        for name, entry in found.items() if isinstance(found, dict) else ():
            words = started_words(entry)
            if name == SERVER or _is_off(entry) or (_starts_mcp(words) and THROUGH not in words):
                continue
            if _starts_mcp(words):
                checks.append(_behind(client, name, entry, table.file, context))
            else:
                open_ones.setdefault(table.file, []).append(name)
    for path, names in open_ones.items():
        sentence = f"Not behind the gateway in {path}: {', '.join(names)}"
        hint = f"whisper-tui install {client} --gateway puts those there that the client starts; see docs/connect.md"
        checks.append(note("gateway", sentence, hint))
    return checks


def _behind(client: str, name: str, entry: dict[str, Any], path: Path, context: DoctorContext) -> Check:
    """Check one server behind the gateway: the gateway's own program, and that of the server."""
    words = started_words(entry)
    found = split_wrapped(words)
    again = f"Run whisper-tui install {client} --gateway"
    missing = _missing(words[0], entry, context)
    script = launcher_of(words)[-1]
    if missing is None and script.startswith("/") and not Path(script).exists():
        missing = f"{script} was not found"
    if missing is not None:
        return bad("gateway", f"The gateway before the MCP server {name} in {path} cannot start: {missing}", again)
    if found is not None and (missing := _missing(found[1][0], entry, context)) is not None:
        sentence = f"The MCP server {name} in {path} cannot start behind the gateway: {missing}"
        return bad("gateway", sentence, "Install it, or correct its command line behind --")
    if old := not_isolated("gateway", f"The gateway before the MCP server {name} in {path}", words, again):
        return old[0]
    if not is_gateway(words, context.launch):
        return note("gateway", f"The MCP server {name} in {path} is behind the gateway of another installation", again)
    starts = f"starts {found[1][0]}" if found is not None else "is named in the configuration file"
    return good("gateway", f"The MCP server {name} in {path} is behind the gateway and {starts}")


def _missing(program: str, entry: dict[str, Any], context: DoctorContext) -> str | None:
    """Return why a client could not start a program. None: it could."""
    own = next((given for key in ("env", "environment") if isinstance(given := entry.get(key), dict)), {})
    path = own.get("PATH") or context.environ.get("PATH")
    # A relative path begins where the client is started.
    place = str(context.project / program) if "/" in program else program
    return None if shutil.which(place, path=path if isinstance(path, str) else None) else f"{program} was not found"


def _is_off(entry: Any) -> bool:
    return isinstance(entry, dict) and (entry.get("enabled") is False or entry.get("disabled") is True)
