"""Effects of a call through the API: in process, over the socket and in memory."""

from pathlib import Path

import pytest

from tests.port.conftest import Desk
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import Refused, UnknownCall


async def test_the_effects_of_a_waiting_call_are_stated_and_nothing_of_it_runs(desk: Desk) -> None:
    root = Path(desk.session.root)
    (root / "app.conf").write_text("rate = 10\n")
    call_id = await desk.submit(text="echo 'rate = 20' > app.conf; touch ran; ssh prod.example true")
    effects = await desk.port.effects(call_id)
    written, touched = effects.files
    assert (written.action, written.path, written.before, written.size) == (
        "writes",
        str(root / "app.conf"),
        "file",
        10,
    )
    assert written.diff is not None and written.diff.text == "@@ -1 +1 @@\n-rate = 10\n+rate = 20\n"
    assert (touched.path, touched.before) == (str(root / "ran"), "absent")
    assert [host.host for host in effects.hosts] == ["prod.example"]
    assert (root / "app.conf").read_text() == "rate = 10\n" and not (root / "ran").exists()


async def test_a_call_that_has_started_has_no_effects_ahead(desk: Desk) -> None:
    call_id = await desk.submit(text="true")
    await desk.decide(call_id, Approve())
    await desk.port.outcome(call_id)
    with pytest.raises(Refused, match="has started"):
        await desk.port.effects(call_id)
    with pytest.raises(UnknownCall):
        await desk.port.effects("999")
