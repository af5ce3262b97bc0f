"""The programs that are asked about Codex: its app server, and the environment in which it runs everything."""

import os
import pwd
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_tui.agents.client_files import SERVER, TOML, InstallRequest, is_launcher, plain_of
from whisper_tui.agents.file_entries import Element, FileEntry, Setting, value_at
from whisper_tui.agents.findings import Check, DoctorContext, bad, command_line, good, not_isolated, note
from whisper_tui.agents.probe import Canary, NotRun, answer_by_lines, denied_by_supervisor, numbers, prove
from whisper_tui.model.errors import BadConfiguration, InvalidRequest
from whisper_tui.model.text import visible

PATIENCE_S = 20.0
"""Seconds that Codex has to answer."""
START_S = 60.0
"""Seconds that Codex has to begin a session, for which it starts the environment and all MCP servers."""
LONGEST_REASON = 500
"""Characters of a reason of Codex that are shown."""

_CLIENT_INFO = {"name": "whisper_tui", "title": "whisper_tui", "version": "1"}
_INITIALIZE_APP_SERVER = {"id": 1, "method": "initialize", "params": {"clientInfo": _CLIENT_INFO}}


@dataclass(frozen=True)
class ListedHook:
    """A hook as Codex lists it. Codex stores its trust under `key`, and trusts the hook with the hash `hash`."""

    key: str
    command: str
    hash: str
    trusted: bool
    enabled: bool


def login_shell(_: Mapping[str, str]) -> str:
    """Return the user's login shell, in which Codex runs commands, whatever `SHELL` says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""


class NoAnswer(Exception):
    """Codex is not installed, or did not answer. The message has the reason."""


_OUR_EVENTS = frozenset({"preToolUse", "permissionRequest", "sessionStart", "postToolUse"})


def hooks_of(environ: Mapping[str, str], directory: Path, *, patience_s: float = PATIENCE_S) -> list[ListedHook]:
    """Return the hooks of our events that Codex would run in a directory. Raises `NoAnswer`."""
    program = shutil.which("codex", path=environ.get("PATH"))
    if program is None:
        raise NoAnswer("codex is not on PATH")
    listing = {"id": 2, "method": "hooks/list", "params": {"cwds": [str(directory)]}}
    try:
        sent = (_INITIALIZE_APP_SERVER, {"method": "initialized"}, listing)
        message = answer_by_lines([program, "app-server"], environ, directory, sent, patience_s=patience_s)
    except NotRun as problem:
        raise NoAnswer(str(problem)) from problem
    if "result" not in message:
        raise NoAnswer("this version of codex does not list its hooks")
    answer = message["result"]
    try:
        listed = [hook for row in answer["data"] for hook in row["hooks"]]
        return [_seen(hook) for hook in listed if hook["eventName"] in _OUR_EVENTS]
    except (KeyError, TypeError) as error:
        raise NoAnswer("codex lists its hooks in an unknown format") from error


@contextmanager
def isolated_configuration(name: str, text: str, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield an environment in which Codex has one configuration file of that name and nothing else."""
    with tempfile.TemporaryDirectory(prefix="whisper-tui-", ignore_cleanup_errors=True) as directory:
        Path(directory, name).write_text(text, encoding="utf-8")
        yield {**environ, "CODEX_HOME": directory}


def _seen(hook: dict[str, Any]) -> ListedHook:
    return ListedHook(
        key=hook["key"],
        command=hook.get("command") or "",
        hash=hook["currentHash"],
        trusted=hook.get("trustStatus") in {"trusted", "managed"} or bool(hook.get("isManaged")),
        enabled=bool(hook.get("enabled", True)),
    )


def trust_check(path: Path, hook: ListedHook | None) -> Check:
    """Check that Codex runs a hook in this file. `hook`: as Codex lists it, or None."""
    if hook is None:
        return bad(
            "trust", f"Codex does not read the hook in {path}", "Trust the project in Codex, or check its settings"
        )
    if not hook.enabled:
        return bad("trust", f"The hook in {path} is switched off in Codex", "Switch it on with /hooks in Codex")
    if not hook.trusted:
        hint = "Trust it with /hooks in Codex, or run whisper-tui install codex"
        return bad("trust", f"Codex does not trust the hook in {path} and silently skips it", hint)
    return good("trust", f"Codex trusts the hook in {path}")


ENVIRONMENT = "whisper"
EXECUTOR = "executor"
FIRST_VERSION = (0, 169)
"""The first version of Codex that has the environments which whisper_tui knows."""
MEASURED_VERSION = (0, 171)
"""The newest version of Codex with which the environment was measured. Its protocol is experimental."""
_AGAIN = "Run whisper-tui install codex --executor"


def is_environment(entry: object) -> bool:
    """True if an entry starts the environment of any installation of whisper_tui."""
    words = command_line(entry.get("program"), entry.get("args", [])) if isinstance(entry, dict) else []
    return any(word == EXECUTOR and is_launcher(words[:at]) for at, word in enumerate(words))


def environment_entries(request: InstallRequest) -> list[FileEntry]:
    """Return the entries that make Codex leave its commands and files to whisper_tui, and to nothing else."""
    words = [*request.launch.program, EXECUTOR, *request.launch.home]
    entry = {"id": ENVIRONMENT, "program": words[0], "args": words[1:], "initialize_timeout_sec": 30}
    return [
        Setting(("default",), ENVIRONMENT),
        # Otherwise the model could choose to run a command in Codex itself.
        Setting(("include_local",), value=False),
        Element(("environments",), entry, is_environment),
    ]


def check_request(request: InstallRequest, version: str | None) -> None:
    """Raise `InvalidRequest` if Codex cannot be given an environment as requested."""
    if request.project is not None:
        raise InvalidRequest("Codex has environments for all projects alone", hint="Leave --project out")
    if request.agent_runs:
        raise InvalidRequest("with --executor, Codex itself runs nothing", hint="Leave --agent-runs out")
    if version is not None and not _is_known(version):
        hint = "Update Codex, or leave --executor out: then the hook asks about its commands"
        raise InvalidRequest(f"Codex {version} has no environments that whisper_tui knows", hint=hint)


def local_servers(configuration: Any) -> dict[str, dict[str, Any]]:
    """Return the MCP servers of others that Codex would start on this machine, outside of any environment."""
    found = value_at(configuration, ("mcp_servers",))
    return {
        name: entry
        for name, entry in (found.items() if isinstance(found, dict) else ())
        if isinstance(entry, dict) and "command" in entry and name != SERVER
        if entry.get("enabled") is not False and "environment_id" not in entry
    }


def check_servers(path: Path, configuration: Any) -> list[str]:
    """Return notes about the MCP servers that Codex will not offer. Raises `InvalidRequest` if it would not start."""
    servers = local_servers(configuration)
    required = [name for name, entry in servers.items() if entry.get("required")]
    if required:
        names = ", ".join(map(visible, required))
        raise InvalidRequest(
            f"with --executor, Codex starts no MCP servers itself, and {path} requires {names}: it would not start",
            hint="Remove `required = true` there, or leave --executor out",
        )
    told = "Codex is offered no tools of whisper_tui: with --executor, it starts no MCP servers itself"
    if not servers:
        return [told]
    return [f"{told}. So these of yours are gone until you install without it: {', '.join(map(visible, servers))}"]


def is_supported(version: str | None) -> bool:
    """True if an installed Codex can be given an environment."""
    return version is not None and _is_known(version)


def _is_known(version: str) -> bool:
    return bool(re.fullmatch(r"[0-9.]+", version)) and numbers(version) >= FIRST_VERSION


def examine_environment(context: DoctorContext, path: Path, plain: Any, version: str | None) -> list[Check]:
    """Check that Codex leaves everything to our environment, and that this stops a canary."""
    entries = value_at(plain, ("environments",))
    ours = [entry for entry in entries if is_environment(entry)] if isinstance(entries, list) else []
    if not ours:
        return []
    checks = [good("environment", f"The environment is in {path}")]
    if value_at(plain, ("default",)) != ours[0].get("id"):
        checks.append(bad("environment", f"{path} makes another environment the default", _AGAIN))
    if value_at(plain, ("include_local",)) is not False:
        checks.append(bad("environment", f"{path} lets the model run commands in Codex itself", _AGAIN))
    others = [entry for entry in entries if not is_environment(entry)]
    if others:
        checks.append(bad("environment", f"{path} has other environments, in which commands are not supervised", ""))
    if version is not None and (not is_supported(version) or numbers(version)[:2] > MEASURED_VERSION):
        measured = ".".join(map(str, MEASURED_VERSION))
        sentence = f"The protocol of environments is experimental; it was measured with Codex {measured}, not {version}"
        checks.append(note("environment", sentence, "If Codex refuses to work, run whisper-tui install codex"))
    checks += _start_checks(context, path.with_name("config.toml"), version)
    words = command_line(ours[0].get("program"), ours[0].get("args", []))
    # At the other end of ssh, nothing of a project is in the environment.
    if Path(words[0]).name != "ssh":
        checks += not_isolated("environment", f"The environment in {path}", words, _AGAIN)
    problem = prove(lambda canary: _ask_environment(words, context, canary))
    if problem is None:
        return [*checks, good("gate", f"The environment in {path} stopped a test command")]
    return [*checks, bad("gate", f"The environment in {path} failed the test: {problem}", _AGAIN)]


def _start_checks(context: DoctorContext, configuration: Path, version: str | None) -> list[Check]:
    """Check that Codex begins a session in the environment, and name the MCP servers that it does not offer there."""
    checks = []
    try:
        servers = local_servers(plain_of(configuration, TOML))
    except BadConfiguration:
        servers = {}  # The doctor has named the file already.
    if servers:
        sentence = f"Codex starts no MCP servers in an environment, so these are not offered: {', '.join(servers)}"
        checks.append(note("servers", sentence, "Servers with a url are; without --executor, all are"))
    if version is None:
        return checks
    try:
        begin_session(context.environ, context.project)
    except NoAnswer as problem:
        return [*checks, bad("start", f"Codex cannot begin a session in the environment: {problem}", _AGAIN)]
    return [*checks, good("start", "Codex began a session in the environment")]


def begin_session(environ: Mapping[str, str], directory: Path, *, patience_s: float = START_S) -> None:
    """Let Codex begin a session as its user would, which it does not keep. Raises `NoAnswer` if it cannot."""
    program = shutil.which("codex", path=environ.get("PATH"))
    if program is None:
        raise NoAnswer("codex is not on PATH")
    begin = {"id": 2, "method": "thread/start", "params": {"cwd": str(directory), "ephemeral": True}}
    sent = (_INITIALIZE_APP_SERVER, {"method": "initialized"}, begin)
    try:
        message = answer_by_lines([program, "app-server"], environ, directory, sent, patience_s=patience_s)
    except NotRun as problem:
        raise NoAnswer(str(problem)) from problem
    if "result" not in message:
        error = message.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        raise NoAnswer(visible(str(said or "it does not say why"))[:LONGEST_REASON])


def _ask_environment(words: list[str], context: DoctorContext, canary: Canary) -> str | None:
    """Start a canary in an environment. None: it was stopped by a supervisor."""
    argv = ["/bin/bash", "-c", f"{canary.command} # {secrets.token_hex(4)}"]
    asked = {"processId": canary.name, "argv": argv, "cwd": canary.directory.as_uri()}
    sent = (
        {"id": 1, "method": "initialize", "params": {"clientName": "whisper-tui-doctor"}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "process/start", "params": asked},
    )
    answer = answer_by_lines(words, context.environ, canary.directory, sent, patience_s=context.canary_s)
    error = answer.get("error")
    return denied_by_supervisor(str(error.get("message")), canary) if isinstance(error, dict) else "it was started"
