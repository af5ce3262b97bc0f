"""What tests of the doctor look for in its reports, and how they break what was installed."""

from tests.install.conftest import Machine
from whisper_tui.agents.findings import CheckState, Report

FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/plugin/whisper_tui.js",
    "qwen": ".qwen/settings.json",
    "copilot": ".copilot/hooks/whisper_tui.json",
    "kimi": ".kimi-code/config.toml",
    "kilo": ".config/kilo/plugin/whisper_tui.js",
}
PROJECT_FILES = {
    "claude": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".opencode/plugin/whisper_tui.js",
    "qwen": ".qwen/settings.json",
    "copilot": ".github/hooks/whisper_tui.json",
    "kilo": ".kilo/plugin/whisper_tui.js",
}


def said(report: Report, subject: str, state: CheckState) -> str:
    """The one sentence of that kind."""
    (check,) = [one for one in report.checks if one.subject == subject and one.state is state]
    return f"{check.sentence}. {check.hint}"


def troubles(report: Report) -> list[str]:
    """What is not good, without the warning that always holds for Gemini CLI."""
    return [
        check.sentence
        for check in report.checks
        if check.state is not CheckState.GOOD and check.subject not in {"acp", "safe mode"}
    ]


def change(machine: Machine, name: str, old: str, new: str) -> None:
    path = machine.home / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
