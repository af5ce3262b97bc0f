"""Colour is never the only signal: with all colours taken away, signs and words still tell everything apart."""

from itertools import combinations

from tests.rows import each_row
from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided, Judged
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Resolved, Risk, Verdict
from whisper_tui.present.call_text import heading
from whisper_tui.tui.cockpit.call_row import row_line
from whisper_tui.tui.dialogs.help_dialog import SIGNS

NOW = 1_700_000_000.0


def of_every_kind() -> dict[str, CallRecord]:
    """The same command in every state, asked at the same moment."""
    found: dict[str, CallRecord] = {}

    def make(name: str, *risks: Risk) -> tuple[Scenario, str]:
        scenario = Scenario.begin()
        spec = CommandSpec(command=Shell(text="make"), cwd=ROOT)
        request = CallRequest(session_id="s1", tool="t", arguments={}, spec=spec)
        return scenario, scenario.supervisor.ask(request, Verdict(kind="ask", reason="", risks=risks))

    def keep(name: str, scenario: Scenario, call: str) -> None:
        found[name] = scenario.supervisor.board.calls[call]

    keep("waiting", *make("waiting"))
    keep("risky", *make("risky", Risk(id="network", sentence="x")))
    keep("grave", *make("grave", Risk(id="destructive", sentence="x")))
    scenario, call = make("asked again")
    scenario.supervisor.happen(Decided(at=NOW, call_id=call, decision=Approve(), by=ME))
    keep("queued", scenario, call)
    scenario.supervisor.happen(
        Judged(at=NOW, call_id=call, verdict=Verdict(kind="ask", reason="x"), resolved=Resolved())
    )
    keep("asked again", scenario, call)
    for name, code, behind in (("running", None, False), ("good", 0, False), ("bad", 1, False), ("behind", 0, True)):
        scenario, call = make(name)
        scenario.approve(call)
        if behind:
            scenario.supervisor.leave_behind(call, "sleep")
        if code is not None:
            scenario.supervisor.finish(call, Exited(code=code))
        keep(name, scenario, call)
    scenario, call = make("denied")
    scenario.deny(call, "no")
    keep("denied", scenario, call)
    return found


@each_row("width", [27, 37, 79])
def test_rows_of_the_list_differ_in_their_text_alone(width: int) -> None:
    rows = {}
    for name, record in of_every_kind().items():
        whole = width > 64
        parts = (0,) if whole else (0, 1)
        rows[name] = "".join(span.text for p in parts for span in row_line(record, None, p, width, NOW, whole=whole))
    for one, other in combinations(rows, 2):
        assert rows[one] != rows[other], f"{one} and {other} look the same"


def test_headings_of_calls_differ_in_their_text_alone() -> None:
    kinds = {name: record for name, record in of_every_kind().items() if name not in {"risky", "grave", "asked again"}}
    words = {name: "".join(span.text for span in heading(record, NOW)) for name, record in kinds.items()}
    assert len(set(words.values())) == len(words)


def test_every_sign_is_unique() -> None:
    signs = [sign for sign, _, _ in SIGNS]
    assert len(set(signs)) == len(signs)


async def test_selected_rows_and_marked_parts_have_their_own_signs() -> None:
    async with open_cockpit(workday(), theme="grey-dark") as cockpit:
        assert "▌◆ s1  rm -rf cache" in cockpit.text()
        segments = [segment for strip in cockpit.strips() for segment in strip]
        assert any(s.text == "rm -rf" and s.style is not None and s.style.underline for s in segments)


async def test_the_focused_pane_has_its_own_sign() -> None:
    async with open_cockpit(workday(), theme="grey-dark") as cockpit:
        await cockpit.select("6")
        await cockpit.sees("▌▶ s2  ./crawl.sh")
        await cockpit.press("tab")
        await cockpit.sees("▏▶ s2  ./crawl.sh", "▌Call 6")
        await cockpit.press("tab")
        await cockpit.sees("▏▶ s2  ./crawl.sh", " Call 6")
        title = [s for strip in cockpit.strips() for s in strip if "stdout" in s.text]
        assert title and all(s.style is not None and s.style.reverse for s in title)


async def test_invisible_characters_are_spelled_out_not_only_coloured() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text="echo a\u202eb"), cwd=ROOT)
    scenario.supervisor.ask(CallRequest(session_id="s1", tool="t", arguments={}, spec=spec))
    async with open_cockpit(scenario, theme="grey-light") as cockpit:
        await cockpit.sees("⟨U+202E⟩")
