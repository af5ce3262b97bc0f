"""One profile for each agent client: nothing else knows which clients there are."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import whisper_tui
from tests.rows import each_row
from tests.syntax import syntax_tree
from whisper_tui import agents
from whisper_tui.agents.known_clients import KNOWN, profile_behind, profile_of, profiles
from whisper_tui.agents.profile import ClientProfile
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.transports.hook.hook_program import MARGIN_S

PACKAGE = Path(whisper_tui.__file__).parent

ELSEWHERE = {
    "cli/ask_hook.py": "asks for the server over HTTP and the Claude Agent SDK as a hook of Claude Code does",
    "cli/commands/agent_entry.py": "says that the environment speaks a protocol of Codex, which no other client has",
    "cli/commands/install_client.py": "installs that environment, into Codex alone",
    "cli/mcp_http.py": "prints the address of the HTTP hook, and keeps Claude Code's variables from its own session",
    "demo/story.py": "tells a newcomer how to connect an agent of their own",
    "integrations/claude_agent.py": "supervises the Claude Code that the Claude Agent SDK starts",
    "policy/risks/later_files.py": "files of all programs whose change changes what runs",
    "supervisor/runs/sandbox_profile.py": "files of all programs that hold secrets",
    "system/closed_paths.py": "directories of all programs that hold secrets",
    "transports/codex_environment/environment_endpoint.py": "the supervisor's end of Codex's own protocol",
    "transports/codex_environment/environment_program.py": "the other end of that protocol, with Codex's directories",
    "transports/codex_environment/environment_runs.py": "the variables of Codex, and the sessions of its hooks",
    "transports/mcp/mcp_calls.py": "reads the metadata of Codex, which clients of other names send too",
    "transports/acp/acp_sessions.py": "how the agents of editors run commands, of which some have no hook",
    "transports/mcp/http_site.py": "serves the hook over HTTP, which Claude Code alone can ask",
    "tui/cockpit/call_panel.py": "tells a newcomer without any client which ones can be connected",
}
"""The modules outside of `agents` whose code names a client, and the reason. It may only become shorter."""


@each_row("profile", profiles(), ids=lambda profile: profile.name)
def test_a_hook_answers_before_its_client_runs_the_command_without_it(profile: ClientProfile) -> None:
    deadline_s = KNOWN[profile.name].deadline_s
    assert profile.hook_timeout_s is None or deadline_s + MARGIN_S <= profile.hook_timeout_s


@each_row("profile", profiles(), ids=lambda profile: profile.name)
def test_the_table_of_clients_says_what_their_profiles_say(profile: ClientProfile) -> None:
    known = KNOWN[profile.name]
    assert [one.name for one in profile.rule_formats] == list(known.rule_formats)
    assert known.installs == (profile.plan_install is not None) == (profile.find is not None)
    assert profile_behind(profile.hook.name) is profile
    assert profile.calls_itself(profile.hook.name)


def test_every_module_with_a_profile_has_its_row() -> None:
    modules = (
        importlib.import_module(f"{agents.__name__}.{one.name}") for one in pkgutil.iter_modules(agents.__path__)
    )
    found = {
        profile.name for module in modules for profile in vars(module).values() if isinstance(profile, ClientProfile)
    }
    # A client that can only be connected by hand needs no module of its own, and Kilo is in that of OpenCode.
    assert found == {name for name, known in KNOWN.items() if known.installs}


def test_a_client_without_a_profile_is_refused_with_the_names_of_those_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match="there is no client 'emacs'") as caught:
        profile_of("emacs")
    assert caught.value.hint == f"There are {', '.join(KNOWN)}"
    assert profile_behind("emacs") is None


def words_of_code(path: Path) -> Iterator[str]:
    """Every name and every text of a module, without its docstrings."""
    for node in ast.walk(tree := syntax_tree(path.read_text())):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.slow
def test_only_profiles_and_these_modules_name_a_client() -> None:
    naming = {
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent != PACKAGE / "agents"
        and any(name in word.lower() for word in words_of_code(path) for name in KNOWN)
    }
    assert naming == set(ELSEWHERE)
