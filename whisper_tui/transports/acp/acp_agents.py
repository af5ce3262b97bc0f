"""The agents that the proxy knows: how their commands and edits can be seen, and why one is refused (decision 32)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from whisper_tui.agents.doctor import gaps
from whisper_tui.agents.findings import DoctorContext
from whisper_tui.agents.install_request import Launch
from whisper_tui.agents.known_clients import profile_of
from whisper_tui.model.text import one_line_beginning

Sight = Literal["terminal", "hook", "unseen"]
"""How commands of an agent's shell can be seen: it has the editor run them, its hook asks, or not at all."""

UNSEEN_OPTION = "--allow-unseen-shell"

VERSION = 1
"""The version of the protocol that the proxy reads. Later ones have neither terminals nor files of the editor."""

LONGEST_NAME = 100
"""Characters of an agent's name in a message."""


class KnownAgent(NamedTuple):
    """One row of the table. All of it was measured with the agent's own program."""

    title: str
    shell: Sight
    writes: bool = False
    """True if it has the editor write files, so that each write is seen."""
    client: str = ""
    """The client whose hook works in this agent as well. Empty: there is none."""


AGENTS: Mapping[str, KnownAgent] = {
    "kimi": KnownAgent("Kimi Code", "terminal", writes=True),
    "claude-agent-acp": KnownAgent("Claude Code", "hook", client="claude"),
    "claude-code-acp": KnownAgent("Claude Code", "hook", client="claude"),
    "codex-acp": KnownAgent("Codex", "hook", client="codex"),
    "opencode": KnownAgent("OpenCode", "hook", client="opencode"),
    "gemini": KnownAgent("Gemini CLI", "unseen", writes=True),
    "qwen": KnownAgent("Qwen Code", "unseen", writes=True),
    "copilot": KnownAgent("GitHub Copilot CLI", "hook", client="copilot"),
}
"""By the beginning of the name in the agent's answer to `initialize`, in lower case and without the npm scope."""

UNKNOWN = KnownAgent("", "unseen")
"""An agent that is not in the table: nobody has measured where its commands run."""


def agent_of(info: Mapping[str, Any]) -> KnownAgent:
    """Return the row of an agent by its account of itself."""
    said = str(info.get("name") or "")[:LONGEST_NAME]
    name = said.rpartition("/")[2].lower()
    # Only a whole word counts: "kimi-code" is Kimi, and "kimiko" is another agent.
    known = next(
        (row for word, row in AGENTS.items() if name == word or name.startswith((f"{word}-", f"{word} "))), None
    )
    return known or UNKNOWN._replace(title=one_line_beginning(said, LONGEST_NAME) or "an agent without a name")


def why_refused(agent: KnownAgent) -> str | None:
    """Return why an agent may not be started at all, with what to do. None: it may."""
    if agent.shell != "unseen":
        return None
    problem = (
        f"{agent.title} runs its commands itself, where whisper_tui does not see them"
        if agent in AGENTS.values()
        else f"whisper_tui does not know where {agent.title} runs its commands"
    )
    return (
        f"{problem}, so it was ended. Use an agent that has the editor run its commands, or this one in a terminal "
        f"with the hook or the tools of whisper_tui. With {UNSEEN_OPTION} the proxy starts it all the same: then only "
        "its questions, and what it has the editor do, are held"
    )


def why_unguarded(agent: KnownAgent, project: Path, environ: Mapping[str, str]) -> str | None:
    """Return why the commands of an agent would bypass its hook in a project. None: they do not. Reads files."""
    if not agent.client:
        return None
    profile = profile_of(agent.client)
    if profile.find is None:
        return f"whisper_tui does not know where the hooks of {profile.title} are"
    found = profile.find(DoctorContext(Launch(()), environ, project), None)
    if found.shell_disabled_in:
        return None
    if not found.hooks:
        return (
            f"the hook of whisper_tui is not installed in {profile.title}, which runs its commands itself, so they "
            f"would not be seen in {project}. Run whisper-tui install {agent.client}, or start the proxy with "
            f"{UNSEEN_OPTION}"
        )
    passed = gaps(profile.hook.name, project, environ)
    return f"{passed[0]}. Run whisper-tui doctor {agent.client}" if passed else None
