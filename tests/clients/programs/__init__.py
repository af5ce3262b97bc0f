"""The agent clients under test: how each is set up, started and asked to call a tool."""

from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex
from tests.clients.programs.copilot import Copilot
from tests.clients.programs.gemini import Gemini
from tests.clients.programs.opencode import OpenCode
from tests.clients.programs.program import Program

PROGRAMS: tuple[Program, ...] = (Claude(), Codex(), Gemini(), OpenCode(), Copilot())
"""Every client that is tested."""
