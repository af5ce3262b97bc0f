"""The page about the clients: its table is that of the profiles, and what it calls measured is tested."""

from tests.client_table import PAGE, with_table
from tests.clients.programs import PROGRAMS
from tests.clients.programs.kilo import Kilo
from tests.clients.programs.kimi import Kimi
from tests.clients.programs.qwen import Qwen
from tests.rows import each_row
from whisper_tui.agents.agent_tools import FunctionTool
from whisper_tui.agents.known_clients import profiles
from whisper_tui.agents.profile import ClientProfile, Evidence


def test_the_table_on_the_page_is_the_one_of_the_profiles() -> None:
    assert PAGE.read_text() == with_table(PAGE.read_text()), "run python -m tests.client_table"


@each_row("profile", profiles(), ids=lambda profile: profile.name)
def test_only_clients_whose_program_is_tested_have_measured_abilities(profile: ClientProfile) -> None:
    is_tested = profile.name in {program.name for program in (*PROGRAMS, Qwen(), Kimi(), Kilo())}
    assert (Evidence.MEASURED in profile.abilities) is is_tested


@each_row("profile", profiles(), ids=lambda profile: profile.name)
def test_the_abilities_of_a_client_are_those_of_its_hook(profile: ClientProfile) -> None:
    abilities, tools = profile.abilities, profile.hook.tools.values()
    edits = [tool for tool in tools if not isinstance(tool, FunctionTool)]
    fetches = [tool for tool in tools if isinstance(tool, FunctionTool) and tool.about == "web"]
    possible = Evidence.NOT_POSSIBLE
    assert (abilities.change_of_command is not possible) is profile.hook.takes_result
    assert (abilities.change_of_edit is not possible) is (profile.hook.takes_result and bool(edits))
    if abilities.web is Evidence.MEASURED:
        assert fetches
    if abilities.edits is Evidence.MEASURED:
        assert edits
