"""Calls of one agent at three places, one of which is not reached."""

from tests.tui.edit_scenes import folder
from tests.tui.scenes import ROOT, Scenario
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.state import PlaceState
from whisper_tui.model.verdict import NO_RULE_MATCHES, Resolved, Risk, Verdict

AWAY = "ssh: connect to host gpu2 port 22: No route to host. Try: ssh gpu2 true"
THERE = "/data/garden"
TRAINING = "from leaves import Net, photographs\n\nNet().fit(photographs('beds'))\n"


def ask(scenario: Scenario, text: str, place: str = "", description: str = "", *risks: Risk) -> str:
    """An agent asks for a line at a place."""
    cwd = THERE if place == "gpu1" else ROOT
    request = CallRequest(
        session_id="s1",
        tool="run_shell_command",
        arguments={"command": text, **({"place": place} if place else {})},
        spec=CommandSpec(command=Shell(text=text), cwd=cwd, place=place),
        description=description,
    )
    reason = risks[0].sentence if risks else NO_RULE_MATCHES
    verdict = Verdict(kind="ask", reason=reason, risks=risks, prefixes=(("python3", "train.py"),))
    return scenario.supervisor.ask(request, verdict, Resolved(program="/usr/bin/bash", cwd=cwd))


def at_places() -> Scenario:
    """A call waits to run at one place, others run at two, and one of these cannot be reached."""
    scenario = Scenario.begin()
    there = folder()
    (there / "train.py").write_text(TRAINING)
    scenario.supervisor.directories[THERE] = str(there)
    now = scenario.clock()
    scenario.supervisor.places = (
        PlaceState(
            name="gpu1", way="ssh me@gpu1", reached=True, since=now - 900, host="gpu1", running=1, workspace=THERE
        ),
        PlaceState(name="gpu2", way="ssh gpu2", reached=False, since=now - 240, problem=AWAY, running=1),
        PlaceState(name="sim", way="docker exec garden-sim", reached=True, since=now - 900, host="3f9c", running=0),
    )
    leaves = ask(scenario, "python3 leaves.py --resume", "gpu2", "Sort the photographs of leaves")
    scenario.approve(leaves)
    scenario.clock.advance(250)
    growth = ask(scenario, "python3 growth.py --years 30 | tee growth.csv", "sim", "Simulate thirty years")
    scenario.approve(growth)
    scenario.supervisor.write(growth, b"".join(b"%d,%.2f\n" % (2000 + year, 1.31**year) for year in range(9)))
    scenario.clock.advance(30)
    ask(scenario, "python3 train.py --epochs 40 --photos beds/", "gpu1", "Train on the photographs of the beds")
    scenario.clock.advance(12)
    ask(scenario, "git add -A && git commit -m 'Ferns'", "", "Keep what was changed")
    scenario.clock.advance(5)
    return scenario
