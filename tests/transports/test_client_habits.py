"""What is known of each client decides how long its calls wait and how much it is sent."""

from tests.rows import each_row
from whisper_tui.agents.profile import LONG_WAIT_S, UNKNOWN_WAIT_S
from whisper_tui.agents.profile import SMALLEST_BUDGET as SMALLEST
from whisper_tui.model.call import ClientInfo
from whisper_tui.tools.agent_text import OutputBudget
from whisper_tui.transports.mcp.mcp_calls import output_budget, wait_limit

SMALLEST_BUDGET = OutputBudget(*SMALLEST)


@each_row(
    ("name", "version", "progress", "seconds"),
    [
        ("opencode", "1.18.33", True, 50),
        ("codex-mcp-client", "0.169.0", True, 280),
        ("gemini-cli-mcp-client", "0.61.0", False, 570),
        ("claude-code", "2.1.329", True, LONG_WAIT_S),
        ("claude-code", "2.2.0", True, LONG_WAIT_S),
        ("claude-code", "2.1.329", False, 280),
        ("claude-code", "2.1.197", True, 280),
        ("claude-code", "next", True, 280),
        ("mcp", "0.1.0", False, 280),
        ("mcp-inspector", "2.12.0", False, UNKNOWN_WAIT_S),
        ("something else", "1", True, UNKNOWN_WAIT_S),
    ],
)
def test_each_client_is_answered_before_it_gives_up(name, version, progress, seconds):
    assert wait_limit(ClientInfo(name=name, version=version), progress=progress) == seconds


def test_a_client_that_has_not_said_who_it_is_is_taken_for_an_impatient_one():
    assert wait_limit(None, progress=True) == UNKNOWN_WAIT_S


@each_row(
    ("name", "room"),
    [
        ("claude-code", OutputBudget(48 * 1024, in_bytes=True)),
        ("codex-mcp-client", OutputBudget(11_000)),
        ("gemini-cli-mcp-client", OutputBudget(39_000)),
        ("opencode", OutputBudget(50_000, in_bytes=True, lines=1_900)),
        ("mcp", SMALLEST_BUDGET),
        ("anything", SMALLEST_BUDGET),
    ],
)
def test_each_client_is_sent_what_it_shows_whole(name, room):
    assert output_budget(ClientInfo(name=name)) == room
    assert output_budget(None) == SMALLEST_BUDGET
