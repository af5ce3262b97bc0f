"""Diagnosis of one client: its program, its configuration, and a test whether its hook stops a command."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.agents import probe
from whisper_tui.agents.client_files import SERVER, InstallRequest, Launch, is_gateway, is_server, launcher_of, plain_of
from whisper_tui.agents.file_entries import value_at
from whisper_tui.agents.findings import (
    RELOCATING,
    Check,
    CheckState,
    DoctorContext,
    FoundHook,
    FoundServer,
    Report,
    bad,
    good,
    not_isolated,
    note,
    other_hook_checks,
    replaces,
    variables_set_in,
)
from whisper_tui.agents.gateway_servers import gateway_checks, started_words
from whisper_tui.agents.known_clients import KNOWN, profile_behind, profile_of
from whisper_tui.agents.probe import NotRun, program_of, run, version_of
from whisper_tui.agents.profile import ServerTable
from whisper_tui.agents.running_clients import unhooked_sentences
from whisper_tui.model.errors import BadConfiguration, InvalidRequest

LAUNCHER_S = 20.0
"""Seconds that a launcher has to print its version."""
LONG_S = 3600.0
"""Seconds that a human may need for a decision. A client that waits less cuts calls off."""

_PROVE_AGAIN = "Install it again; if that does not help, check the supervisor with whisper-tui status"


def examine(name: str, context: DoctorContext, *, asked_for: bool) -> Report:
    """Check one client completely. `asked_for`: report a missing hook as an error even if nothing is installed."""
    client = profile_of(name)
    if client.find is None:
        raise InvalidRequest(f"the doctor does not know the files of {client.title}", hint="See docs/connect.md")
    program = program_of(name, context.environ)
    version = version_of(program, context.environ) if program else None
    result = client.find(context, version)
    concerned = asked_for or bool(result.hooks or result.servers or result.environments)
    checks = [_installed(client.title, name, program, version)]
    checks += result.checks
    checks += other_hook_checks(result, client.title)
    if result.hooks:
        again = f"Start {client.title} without that, or know that nothing it does is asked about or recorded"
        checks += [bad("running", sentence, again) for sentence in unhooked_sentences(client, context.environ)]
    checks += [trial() for trial in result.trials]
    if result.shell_disabled_in and not result.hooks:
        checks.append(
            good("hook", f"{client.title} has no shell tool of its own: {result.shell_disabled_in[0]} switches it off")
        )
    elif result.hooks or not result.environments:
        checks += _hook_checks(name, client.title, context, result.hooks, concerned=concerned)
    for server in result.servers:
        checks += _server_checks(server, context)
        if result.hooks or result.environments:
            checks += _doubled_tools(name, server)
    if concerned and client.server_tables is not None:
        request = InstallRequest(context.launch, context.environ, project=context.project)
        checks += gateway_checks(name, client.server_tables(request), context)
    if concerned and not result.servers and not result.environments:
        checks.append(
            note("tools", f"{client.title} is not offered the tools", f"whisper-tui install {name} offers them")
        )
    return Report(name, client.title, version, checks)


def _installed(title: str, name: str, program: str | None, version: str | None) -> Check:
    if program is None:
        return note("client", f"{title} is not installed: {name} is not on PATH")
    if version is None:
        return bad("client", f"{program} does not print its version", f"Try {name} --version")
    return good("client", f"{title} {version} is {program}")


def _hook_checks(
    name: str, title: str, context: DoctorContext, hooks: list[FoundHook], *, concerned: bool
) -> list[Check]:
    if not hooks:
        missing = f"No hook is installed: commands of {title}'s own shell tool are not supervised"
        return [(bad if concerned else note)("hook", missing, f"Run whisper-tui install {name}")]
    checks: list[Check] = []
    if len(hooks) > 1:
        places = " and ".join(str(hook.path) for hook in hooks)
        hint = f"Run whisper-tui uninstall {name}, with --project for the one of the project"
        checks.append(bad("hook", f"The hook is installed {len(hooks)} times, in {places}; one is enough", hint))
    for hook in hooks:
        checks.append(good("hook", f"The hook is in {hook.path}"))
        checks += hook.problems
        checks += _place(name, hook)
        checks += _timing(name, hook)
        checks += _launcher(name, hook.words, context, hook.path)
        problem = hook.prove()
        checks.append(
            good("gate", f"The hook in {hook.path} stopped {hook.proves}")
            if problem is None
            else bad("gate", f"The hook in {hook.path} failed the test: {problem}", _PROVE_AGAIN)
        )
    return checks


def _place(name: str, hook: FoundHook) -> list[Check]:
    """Check that the hook's command line names the directories of its whisper_tui."""
    # Otherwise variables name them, and a project can set those (decision 4).
    if "--directories" in hook.words or "--home" in hook.words:
        return []
    sentence = f"The hook in {hook.path} does not name the directories of its whisper_tui, so a project can redirect it"
    return [bad("place", sentence, f"Run whisper-tui install {name}")]


def _timing(name: str, hook: FoundHook) -> list[Check]:
    """Check that the hook answers before the client gives up and runs the command."""
    deadline = KNOWN[name].deadline_s
    if "--deadline" in hook.words[:-1]:
        try:
            deadline = float(hook.words[hook.words.index("--deadline") + 1])
        except ValueError:
            return [bad("timeout", f"The deadline in {hook.path} is not a number", f"Run whisper-tui install {name}")]
    if hook.timeout_s is None or hook.timeout_s > deadline:
        return [good("timeout", f"The hook answers after {deadline:g} s at the latest, before the client gives up")]
    sentence = (
        f"The client waits {hook.timeout_s:g} s for the hook in {hook.path} and then runs the command; "
        f"the hook may take {deadline:g} s"
    )
    return [bad("timeout", sentence, f"Run whisper-tui install {name}")]


def _launcher(name: str, words: list[str], context: DoctorContext, path: Path) -> list[Check]:
    launcher = launcher_of(words)
    again = f"Run whisper-tui install {name}"
    if not launcher:
        return [bad("launcher", f"{path} does not say how whisper_tui is started", again)]
    if launcher[-1].startswith("/") and not Path(launcher[-1]).exists():
        return [bad("launcher", f"The launcher of the hook does not run: {launcher[-1]} was not found", again)]
    try:
        answer = run([*launcher, "--version"], context.environ, Path("/"), patience_s=LAUNCHER_S)
    except NotRun as problem:
        return [bad("launcher", f"The launcher of the hook does not run: {problem}", again)]
    if answer.code != 0:
        return [bad("launcher", f"{launcher[-1]} ended with exit code {answer.code}", again)]
    if old := not_isolated("launcher", f"The hook in {path}", words, again):
        return old
    if launcher != context.launch.program:
        return [note("launcher", f"{path} starts another installation: {' '.join(launcher)}", again)]
    return [good("launcher", f"{' '.join(launcher)} runs")]


def _server_checks(server: FoundServer, context: DoctorContext) -> list[Check]:
    if not server.words:
        return [note("tools", f"The MCP server in {server.path} is switched off, or is not started by a command")]
    try:
        name = probe.server_name(server.words, context.environ, context.project, patience_s=probe.SERVER_S)
        checks = [good("tools", f"The MCP server in {server.path} answers as {name}")]
    except NotRun as problem:
        checks = [bad("tools", f"The MCP server in {server.path} cannot be used: {problem}", "Install it again")]
    checks += not_isolated("tools", f"The MCP server in {server.path}", server.words, "Install it again")
    if server.timeout_s is None or server.timeout_s < LONG_S:
        given = "no time" if server.timeout_s is None else f"{server.timeout_s:g} s"
        checks.append(
            note("tools", f"{server.path} sets {given} for a call, and a human may need longer", "Install it again")
        )
    if server.asks_again is not None:
        checks.append(note("tools", "The client asks a second time about each call of the tools", server.asks_again))
    return checks


def _doubled_tools(name: str, server: FoundServer) -> list[Check]:
    """Check that a client whose own shell is supervised is not offered other tools for commands as well."""
    if not server.words or "--own-shell" in server.words:
        return []
    sentence = (
        f"The MCP server in {server.path} was written by an earlier version: it offers tools for commands, although "
        "the client's own shell is supervised"
    )
    return [note("tools", sentence, f"Run whisper-tui install {name}")]


def asks_itself(client: str, server: str, project: Path, environ: Mapping[str, str], launch: Launch) -> bool:
    """True if the tools of an MCP server of a client ask about each call themselves: our own, and those of a gateway.

    Every definition of the server counts, because it is not known which one the client has chosen.
    """
    try:
        tables = [_servers_in(table) for table in _tables_of(client, project, environ)]
    except (BadConfiguration, OSError, ValueError):
        return False
    entries = [table[server] for table in tables if server in table]
    return bool(entries) and all(_starts_ours(entry, launch, own=server == SERVER) for entry in entries)


def servers_of(client: str, project: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the names of the MCP servers in a client's files, of those that it can read."""
    names: list[str] = []
    # The directory is a client's own word: no file system may know such a name.
    with suppress(OSError, ValueError):
        for table in _tables_of(client, project, environ):
            with suppress(BadConfiguration):
                names += _servers_in(table)
    return list(dict.fromkeys(names))


def _tables_of(client: str, project: Path, environ: Mapping[str, str]) -> Iterable[ServerTable]:
    profile = profile_behind(client)
    if profile is None or profile.server_tables is None:
        return ()
    return profile.server_tables(InstallRequest(Launch(()), environ, project=project))


def _servers_in(table: ServerTable) -> dict[str, Any]:
    found = value_at(plain_of(table.file, table.opener), table.place)
    return found if isinstance(found, dict) else {}


def _starts_ours(entry: object, launch: Launch, *, own: bool) -> bool:
    if not isinstance(entry, dict):
        return False
    given = {*variables_set_in(entry), *variables_set_in({"env": entry.get("environment")})}
    words = started_words(entry)
    if given & RELOCATING or any(replaces(variable, words) for variable in given):
        return False
    return is_server(words, launch) if own else is_gateway(words, launch)


SUBJECTS = frozenset({"hooks", "hook", "shell", "skills", "variables"})
"""The checks about commands that bypass the hook."""


def gaps(client: str, project: Path, environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each setting that lets commands bypass an installed hook in a project."""
    profile = profile_behind(client)
    if profile is None or profile.find is None or not profile.calls_itself(client):
        return []
    found = profile.find(DoctorContext(Launch(()), environ, project), None)
    if not found.hooks or found.shell_disabled_in or found.environments:
        return []
    checks = [*found.checks, *(problem for hook in found.hooks for problem in hook.problems)]
    passed = [check for check in checks if check.subject in SUBJECTS and check.state is CheckState.BAD]
    return [f"Some commands of {profile.title} in {project} bypass the hook: {check.sentence}" for check in passed]


def running_without_hook(client: str, project: Path, environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each running client of this kind that was started without its installed hook."""
    profile = profile_behind(client)
    if profile is None or profile.find is None or profile.without_hook is None or not profile.calls_itself(client):
        return []
    sentences = unhooked_sentences(profile, environ)
    return sentences if sentences and profile.find(DoctorContext(Launch(()), environ, project), None).hooks else []


def rivals(client: str, project: Path, environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each other hook or plugin that may replace approved calls of a client in a project."""
    profile = profile_behind(client)
    if profile is None or profile.find is None or not profile.calls_itself(client):
        return []
    found = profile.find(DoctorContext(Launch(()), environ, project), None)
    return [f"{profile.title} in {project}: {check.sentence}" for check in other_hook_checks(found, profile.title)]
