"""What the hooks of a client let pass in a project, told by its files alone: nothing is started, no canary is sent."""

from collections.abc import Mapping
from pathlib import Path

from whisper_tui.install.clients import client_of
from whisper_tui.install.doctor.examine import LOOKS
from whisper_tui.install.doctor.found import Scene
from whisper_tui.install.doctor.report import State
from whisper_tui.install.launch import Launch

NAMES = {"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "opencode": "opencode"}
"""What the names begin with that clients give themselves, and how they are called here."""

SUBJECTS = frozenset({"hooks", "hook", "skills", "variables"})
"""The checks that are about commands that pass."""


def gaps(client: str, project: Path, environ: Mapping[str, str]) -> list[str]:
    """One sentence for each; none where no hook was installed, for then nobody expects one."""
    name = next((known for beginning, known in NAMES.items() if client.startswith(beginning)), None)
    if name is None:
        return []
    looked = LOOKS[name](Scene(Launch(()), environ, project), None)
    if not looked.hooks or looked.shut:
        return []
    checks = [*looked.checks, *(problem for hook in looked.hooks for problem in hook.problems)]
    passed = [check for check in checks if check.subject in SUBJECTS and check.state is State.BAD]
    title = client_of(name).TITLE
    return [f"Commands of {title} in {project} are not all held: {check.sentence}" for check in passed]
