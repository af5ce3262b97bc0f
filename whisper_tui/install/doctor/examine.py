"""One client examined: is it there, is it told what it should be, and does the gate stop a command."""

from collections.abc import Callable
from pathlib import Path

from whisper_tui.install.clients import client_of
from whisper_tui.install.doctor import look_claude, look_codex, look_gemini, look_opencode, servers
from whisper_tui.install.doctor.found import FoundHook, FoundServer, Looked, Scene
from whisper_tui.install.doctor.programs import NotRun, program_of, run, version_of
from whisper_tui.install.doctor.report import Check, Report, bad, good, note
from whisper_tui.install.launch import launcher_of

LAUNCHER_S = 20.0
"""Seconds that a launcher has to tell its version."""
DEFAULT_DEADLINES_S = {"claude": 570.0, "codex": 570.0, "gemini": 50.0, "opencode": 3600.0}
"""Seconds after which a hook answers that is told no deadline."""
LONG_S = 3600.0
"""Seconds that a human may well need; a call that may take less is cut off."""

_PROVE_AGAIN = "Install it again; if that does not help, whisper-tui status tells about the supervisor"

LOOKS: dict[str, Callable[[Scene, str | None], Looked]] = {
    "claude": look_claude.look,
    "codex": look_codex.look,
    "gemini": look_gemini.look,
    "opencode": look_opencode.look,
}
"""What each client has been told. With a version, the client itself may be asked; without one, files alone tell."""


def examine(name: str, scene: Scene, *, asked_for: bool) -> Report:
    """Everything about one client. `asked_for`: it should have a gate, even if nothing of ours is found in it."""
    client = client_of(name)
    program = program_of(name, scene.environ)
    version = version_of(program, scene.environ) if program else None
    looked = LOOKS[name](scene, version)
    concerned = asked_for or bool(looked.hooks or looked.servers)
    checks = [_installed(client.TITLE, name, program, version)]
    checks += looked.checks
    if looked.shut and not looked.hooks:
        checks.append(good("hook", f"{client.TITLE} has no shell tool of its own: {looked.shut[0]} switches it off"))
    else:
        checks += _hook_checks(name, client.TITLE, scene, looked.hooks, concerned=concerned)
    for server in looked.servers:
        checks += _server_checks(server, scene)
    if concerned and not looked.servers:
        checks.append(
            note("tools", f"{client.TITLE} is not offered the tools", f"whisper-tui install {name} offers them")
        )
    return Report(name, client.TITLE, version, checks)


def _installed(title: str, name: str, program: str | None, version: str | None) -> Check:
    if program is None:
        return note("client", f"{title} is not installed: {name} is not on PATH")
    if version is None:
        return bad("client", f"{program} does not tell its version", f"Try {name} --version")
    return good("client", f"{title} {version} is {program}")


def _hook_checks(name: str, title: str, scene: Scene, hooks: list[FoundHook], *, concerned: bool) -> list[Check]:
    if not hooks:
        missing = f"No hook is installed: commands of {title}'s own shell tool run unseen"
        return [(bad if concerned else note)("hook", missing, f"Run whisper-tui install {name}")]
    checks: list[Check] = []
    if len(hooks) > 1:
        places = " and ".join(str(hook.path) for hook in hooks)
        hint = f"Run whisper-tui uninstall {name}, with --project for the one of the project"
        checks.append(bad("hook", f"The hook is there {len(hooks)} times, in {places}; one is enough", hint))
    for hook in hooks:
        checks.append(good("hook", f"The hook is in {hook.path}"))
        checks += hook.problems
        checks += _place(name, hook)
        checks += _timing(name, hook)
        checks += _launcher(name, hook.words, scene, hook.path)
        problem = hook.prove()
        checks.append(
            good("gate", f"The hook in {hook.path} stopped a canary")
            if problem is None
            else bad("gate", f"The hook in {hook.path} did not stop a canary: {problem}", _PROVE_AGAIN)
        )
    return checks


def _place(name: str, hook: FoundHook) -> list[Check]:
    """Whether the hook is told whose question it asks; what an environment says can be the project's."""
    if "--directories" in hook.words or "--home" in hook.words:
        return []
    sentence = f"The hook in {hook.path} is not told the directories of its whisper_tui and has to find them"
    return [bad("place", sentence, f"Run whisper-tui install {name}")]


def _timing(name: str, hook: FoundHook) -> list[Check]:
    """Whether the hook answers before the client gives up, for then the command would run."""
    deadline = DEFAULT_DEADLINES_S[name]
    if "--deadline" in hook.words[:-1]:
        try:
            deadline = float(hook.words[hook.words.index("--deadline") + 1])
        except ValueError:
            return [bad("timeout", f"The deadline in {hook.path} is no number", f"Run whisper-tui install {name}")]
    if hook.timeout_s is None or hook.timeout_s > deadline:
        return [good("timeout", f"The hook answers after {deadline:g} s at the latest, before the client gives up")]
    sentence = (
        f"The client waits {hook.timeout_s:g} s for the hook in {hook.path} and then runs the command; "
        f"the hook may take {deadline:g} s"
    )
    return [bad("timeout", sentence, f"Run whisper-tui install {name}")]


def _launcher(name: str, words: list[str], scene: Scene, path: Path) -> list[Check]:
    launcher = launcher_of(words)
    again = f"Run whisper-tui install {name}"
    if not launcher:
        return [bad("launcher", f"{path} does not say how whisper_tui is started", again)]
    try:
        answer = run([*launcher, "--version"], scene.environ, Path("/"), patience_s=LAUNCHER_S)
    except NotRun as problem:
        return [bad("launcher", f"The launcher of the hook does not run: {problem}", again)]
    if answer.code != 0:
        return [bad("launcher", f"{launcher[0]} ended with exit code {answer.code}", again)]
    if launcher != scene.launch.program:
        return [note("launcher", f"{path} starts another installation: {' '.join(launcher)}", again)]
    return [good("launcher", f"{' '.join(launcher)} runs")]


def _server_checks(server: FoundServer, scene: Scene) -> list[Check]:
    if not server.words:
        return [note("tools", f"The MCP server in {server.path} is switched off, or is not started by a command")]
    try:
        name = servers.server_name(server.words, scene.environ, scene.project, patience_s=servers.PATIENCE_S)
        checks = [good("tools", f"The MCP server in {server.path} answers as {name}")]
    except NotRun as problem:
        checks = [bad("tools", f"The MCP server in {server.path} cannot be used: {problem}", "Install it again")]
    if server.timeout_s is None or server.timeout_s < LONG_S:
        given = "no time" if server.timeout_s is None else f"{server.timeout_s:g} s"
        checks.append(
            note("tools", f"{server.path} says {given} for a call, and a human may need longer", "Install it again")
        )
    if server.asks_again is not None:
        checks.append(note("tools", "The client asks a second time about each call of the tools", server.asks_again))
    return checks
