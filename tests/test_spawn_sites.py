"""Every place where the package starts a program or forks is known, with the reason why it may."""

import ast
from collections.abc import Iterator
from pathlib import Path

import whisper_tui
from tests.syntax import syntax_tree

PACKAGE = Path(whisper_tui.__file__).parent

STARTING = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"fork", "spawn"},
    "multiprocessing": {"Process", "Pool"},
    "libc": {"posix_spawn", "posix_spawnp", "system", "fork", "vfork", "popen"},
}
"""Functions that start a process, by the module that they are called on."""
OF_MODULES = set().union(*STARTING.values())
OF_OS = ("fork", "exec", "spawn", "posix_spawn", "popen", "system", "startfile")
"""Beginnings of the names of those of `os`."""

LOOKS = "looks at a workspace: in the cage, or where there is none, only at a repository whose settings run nothing"
CAGE = "the start of the cage"
COMMAND = "starts a supervised command, marked by its keeper"
OWN = "a part of whisper_tui itself; where the supervisor starts it, it has the supervisor's mark"
SYSTEM = "a program of the system that reads nothing of a workspace"
PLACE = "a connection to a place or to another machine, which the user has named"
CONFIGURED = "a program that the user has configured, with the supervisor's mark if that starts it"
HUMAN = "a program that a human opens in a cockpit or by a subcommand: an editor or a pager"
WINDOW = "a window that a human opens by a click, and what opens it: no descendant of the supervisor"
HOOK = "the hook that a client would start, tried by the doctor"
LOGIN = "the login shell of the user at a place, for its variables, in the home directory"
SERVER = "a server or an agent that its own client, or the user, has named: a child of that client's program"

GATED = "the client's own shell: for the ticket of an approved call, or housekeeping in which no command fits"

SITES = {
    "agents/probe.py:_start": HOOK,
    "cli/bring.py:_run": PLACE,
    "cli/commands/manage_config.py:_edit": HUMAN,
    "cli/commands/supervisor_control.py:_Starter.detach": OWN,
    "cli/decision_signer.py:DecisionSigner._signed": SYSTEM,
    "cli/far_output.py:carry": PLACE,
    "cli/other_machines.py:SshHost.connect": PLACE,
    "cli/other_machines.py:SshHost.run": PLACE,
    "cli/web_server.py:Cockpit._open_app_process": OWN,
    "effects/git_reader.py:_uncaged": LOOKS,
    "notify/delivery.py:run_program": CONFIGURED,
    "notify/window_launcher.py:WindowLauncher.__init__": WINDOW,
    "notify/window_launcher.py:_become_launcher": WINDOW,
    "notify/window_launcher.py:_start": WINDOW,
    "supervisor/approvals/ssh_signatures.py:_run": SYSTEM,
    "supervisor/keeper/limited_start.py:_exec": COMMAND,
    "supervisor/keeper/keeper_process.py:KeeperProcess._fork_for": OWN,
    "supervisor/keeper/limited_start.py:fork_limited": COMMAND,
    "supervisor/keeper/spawn.py:spawn.start": COMMAND,
    "supervisor/keeper/guardian.py:Guardian._fork": OWN,
    "supervisor/keeper/guardian_start.py:start_guardian": OWN,
    "supervisor/places/place_transports.py:ask_engine": PLACE,
    "supervisor/places/far_bridge.py:start_detached": OWN,
    "supervisor/places/far_files.py:LoginEnvironment._ask": LOGIN,
    "supervisor/places/far_host.py:FarHost._renew": OWN,
    "supervisor/places/place_connection.py:PlaceConnection._started": PLACE,
    "supervisor/places/ray_bridge.py:PlaceActor._keep": OWN,
    "supervisor/places/ray_bridge.py:PlaceActor.start": OWN,
    "supervisor/preview/preview_process.py:_OverlayHost._report": COMMAND,
    "supervisor/preview/preview_process.py:fork_host": COMMAND,
    "supervisor/preview/preview_ways.py:_BubblewrapHost._become_bubblewrap": COMMAND,
    "supervisor/preview/preview_ways.py:_BubblewrapHost._report": COMMAND,
    "supervisor/preview/preview_ways.py:bubblewrap": SYSTEM,
    "supervisor/runs/preview_probe.py:preview_support": OWN,
    "system/tmux_panes.py:_output": SYSTEM,
    "system/tmux_panes.py:show": SYSTEM,
    "system/ancestry.py:_ps": SYSTEM,
    "system/caged_program.py:_spawn": CAGE,
    "system/processes.py:_output": SYSTEM,
    "transports/acp/acp_proxy.py:run_proxy": SERVER,
    "transports/mcp/gateway.py:run_gateway": SERVER,
    "transports/hook/gate_program.py:_become": GATED,
    "tui/commands/output_commands.py:page": HUMAN,
    "tui/screens/rules_screen.py:edit": HUMAN,
    "wire/rendezvous.py:_start": OWN,
}
"""The function of each site, and what it starts."""


def starts(call: ast.Call) -> bool:
    """True if a call may start a process."""
    last = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if last not in OF_MODULES and not last.startswith(OF_OS):
        return False  # nearly all calls: to write each of them as text takes seconds
    named = ast.unparse(call.func).split(".")
    module, name = (named[-2] if len(named) > 1 else ""), named[-1]
    return name in STARTING.get(module, ()) or (module == "os" and name.startswith(OF_OS))


def sites_of(path: Path) -> Iterator[str]:
    """Yield the functions of a file that start something."""

    def visit(node: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, ast.Call) and starts(node):
            yield f"{path.relative_to(PACKAGE)}:{'.'.join(inside) or 'module'}"
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, (*inside, node.name) if named else inside)

    yield from visit(syntax_tree(path.read_text(encoding="utf-8")), ())


def test_every_place_that_starts_a_process_is_known() -> None:
    found = {site for path in PACKAGE.rglob("*.py") for site in sites_of(path)}
    assert sorted(found - set(SITES)) == [], "name what these start, and cage what looks at a workspace"
    assert sorted(set(SITES) - found) == []
