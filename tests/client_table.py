"""Write the table of docs/clients.md from the profiles of the clients: `python -m tests.client_table`."""

import sys
from pathlib import Path

from tests.clients.install import versions
from whisper_tui.agents.known_clients import profiles
from whisper_tui.agents.profile import Abilities, ClientProfile, Evidence

PAGE = Path(__file__).parent.parent / "docs" / "clients.md"
BEGIN, END = "<!-- generated: python -m tests.client_table -->\n", "<!-- end of the table -->\n"
TITLES = {
    "change_of_command": "your change of a command",
    "change_of_edit": "your change of an edit",
    "one_question": "asks no second time",
    "late_decision": "a late decision",
    "edits": "edits",
    "web": "web",
    "servers": "tools of other servers",
}
assert tuple(TITLES) == Abilities._fields


def table() -> str:
    """Return the table in Markdown."""
    rows = [("client", "version", *TITLES.values()), ("---",) * (len(TITLES) + 2)]
    installed = versions()
    for profile in profiles():
        version = installed.get(profile.name, "none was run")
        rows.append((name_of(profile), version, *(cell(evidence) for evidence in profile.abilities)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def name_of(profile: ClientProfile) -> str:
    """Return the title of a client, as a link to its page if it has one."""
    pages = PAGE.parent / "agents"
    mark = f"whisper-tui install {profile.name} "
    page = next((page for page in sorted(pages.glob("*.md")) if mark in page.read_text()), None)
    return profile.title if page is None else f"[{profile.title}](agents/{page.name})"


def cell(evidence: Evidence) -> str:
    """Return the words of a cell."""
    return f"*{evidence}*" if evidence is Evidence.NOT_POSSIBLE else str(evidence)


def with_table(page: str) -> str:
    """Return the page with the table of now."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"the marks of the table are missing in {PAGE}"
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
    sys.stdout.write(f"wrote {PAGE}\n")
