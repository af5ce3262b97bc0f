"""The page of a session: a picture of what it did, which runs nothing, fetches nothing and takes text as data."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

from tests.outside import outside_only
from tests.story import EDIT, edited, row
from whisper_tui.export.session_story import SessionStory
from whisper_tui.export.story_page import LEFT, PLOT, TimeAxis, lanes, page, summary
from whisper_tui.model.call import Session
from whisper_tui.model.decision import Deny

pytestmark = outside_only

ROUGH = "echo '</title></svg></style><script>alert(1)</script><img src=x onerror=alert(1)>' \"& \x1b[2J\u202e"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "footer", "h1", "p", "span", "bdi", "div", "ol", "li", "br"),
    *("svg", "g", "rect", "line", "text", "a", "details", "summary", "pre"),
}


class Read(HTMLParser):
    """Reads a page as a browser does, as far as tags and attributes go."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Read:
    found = Read()
    found.feed(text)
    return found


async def rows_of(harness: Any) -> list[dict[str, Any]]:
    return [row async for row in SessionStory(harness.api, harness.session).rows()]


SESSION = Session(id="s3", name="shop (claude-code)", root="/home/me/shop", opened_at=0.0)
DAY = [
    row(1, 1000.0),
    row(2, 1010.0, by_human=True, decided_at=1070.0, started_at=1070.0, ended_at=1075.0, network=True),
    row(3, 1080.0, **EDIT, title="edit src/tax.py", files=[edited("src/tax.py", 64, 30)]),
    row(4, 1090.0, by_human=True, outcome="denied", decided_at=1100.0, started_at=None, ended_at=1100.0),
    row(5, 1110.0, command="fetch", title="fetch example.org", hosts=["example.org"], started_at=None),
    row(6, 1120.0, failed=True, outcome="failed with exit code 1", command=["/usr/bin/make", "all"]),
    row(7, 40000.0, decided_at=None, started_at=None, ended_at=None, outcome="waiting"),
]


async def test_text_of_agents_is_data_on_the_page(harness: Any) -> None:
    await harness.submit(text=ROUGH)
    named = harness.session.model_copy(update={"name": f"{ROUGH}'\">", "root": ROUGH})
    text = "".join(page([(named, await rows_of(harness))]))
    found = read(text)
    assert found.tags <= TAGS
    assert not {name for name, _ in found.attributes if name.startswith("on") or name in {"src", "style", "xlink:href"}}
    assert all(value.startswith("#") for name, value in found.attributes if name == "href")
    assert "\x1b" not in text and "\u202e" not in text
    assert "<script>alert(1)</script>" in found.text


def test_the_page_forbids_everything_but_its_own_style() -> None:
    text = "".join(page([(SESSION, DAY)]))
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style and "@import" not in style and "//" not in text
    assert "prefers-color-scheme: light" in style


def test_calls_files_hosts_and_questions_have_lanes() -> None:
    found = {name: {lane.name: lane for lane in group} for name, group in lanes(DAY)}
    assert set(found["You"]) == {"decided", "it waited"}
    assert [mark.sign for mark in found["You"]["decided"].marks] == ["✔", "⊘", "?"]
    assert [mark.end - mark.start for mark in found["You"]["it waited"].marks][:2] == [60.0, 10.0]
    assert {name: lane.total for name, lane in found["Commands"].items()} == {"npm": "2", "make": "1"}
    assert [mark.kind for mark in found["Commands"]["make"].marks] == ["failed"]
    assert {name: lane.total for name, lane in found["Files"].items()} == {"src/tax.py": "+64 −30"}
    assert set(found["Network"]) == {"example.org", "by commands"}
    assert summary(DAY).endswith(
        "7 calls · a human was asked about 3: 1 approved, 1 denied, 1 waits · it waited 1 min 10 s for that"
    )


def test_each_mark_leads_to_its_call() -> None:
    found = read("".join(page([(SESSION, DAY)])))
    ids = {value for name, value in found.attributes if name == "id"}
    leads = {value[1:] for name, value in found.attributes if name == "href"}
    assert ids == {f"s3-{number}" for number in range(1, 8)} == leads


def test_names_beyond_the_most_frequent_share_a_lane() -> None:
    rows = [row(number, 1000.0 + number, command=[f"program{number}"]) for number in range(30)]
    commands = dict(lanes(rows))["Commands"]
    assert [lane.name for lane in commands][-1] == "20 others" and len(commands) == 11
    assert sum(len(lane.marks) for lane in commands) == 30


def test_long_pauses_are_cut_short_and_time_never_runs_backwards() -> None:
    axis = TimeAxis([(0.0, 600.0), (50_000.0, 50_600.0), (50_100.0, 50_200.0)])
    assert [round(seconds) for _, seconds in axis.pauses()] == [49_400]
    places = [axis.place(at) for at in (0.0, 300.0, 600.0, 25_000.0, 50_000.0, 50_600.0)]
    assert places == sorted(places) and places[0] == LEFT and round(places[-1]) == LEFT + PLOT
    assert abs((places[2] - places[0]) - (places[5] - places[4])) < 0.01
    ticks = [place for place, _ in axis.ticks()]
    assert ticks == sorted(ticks) and all(LEFT <= place <= LEFT + PLOT for place in ticks)


def test_a_month_of_single_calls_fits() -> None:
    axis = TimeAxis([(day * 86_400.0, day * 86_400.0) for day in range(200)])
    assert all(LEFT <= axis.place(day * 86_400.0) <= LEFT + PLOT + 0.01 for day in range(200))


async def test_a_session_without_calls_has_a_page(harness: Any) -> None:
    assert "No calls." in "".join(page([(harness.session, await rows_of(harness))]))


async def test_the_story_tells_when_calls_were_decided_started_and_ended(harness: Any) -> None:
    await harness.run(text="exit 4")
    denied = await harness.submit("rm", "-r", "build")
    await harness.decide(denied, Deny(reason="keep it"))
    first, second = await rows_of(harness)
    assert first["at"] <= first["decided_at"] <= first["started_at"] <= first["ended_at"]
    assert first["failed"] and first["by_human"] and second["by_human"] and second["started_at"] is None
    text = "".join(page([(harness.session, [first, second])]))
    assert "failed with exit code 4" in text and "1 denied" in text
