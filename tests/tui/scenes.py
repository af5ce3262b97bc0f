"""The demo's story in a supervisor in memory, stopped at moments worth a picture."""

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.in_memory.supervisor import InMemorySupervisor
from tests.in_memory.world import ManualClock
from whisper_tui.demo.scripted_agents import PROJECT, OwnTools
from whisper_tui.demo.story import BUILDER, RELEASER, SCENES, StoryScene
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.event import AgentGaveUp, Decided, Finished, SetAside
from whisper_tui.model.run import Usage
from whisper_tui.model.state import WENT_ON
from whisper_tui.model.verdict import NO_RULE_MATCHES, Meaning, Resolved, Risk, Verdict

ROOT = "/home/me/garden"
ME = Decider(surface="cockpit", who="me")
MEANINGS = {
    "clean": (Meaning(words=("rm", "-rf", "cache", "drafts"), program="/usr/bin/rm"),),
    "preview": (
        Meaning(words=("./serve.sh",), program=f"{ROOT}/serve.sh", background=True),
        Meaning(words=("echo", "The preview is starting")),
    ),
}
BY_ID = {scene.id: scene for scene in SCENES}


def spec_of(scene: StoryScene) -> CommandSpec:
    """What a scene's call would run."""
    if (own := OwnTools(Path(ROOT)).request(scene, "s1")) is not None:
        return own.spec
    arguments = scene.arguments
    if scene.tool == "run_shell_command":
        return CommandSpec(command=Shell(text=arguments["command"]), cwd=ROOT)
    command = Argv(program=arguments["command"], args=tuple(arguments.get("args", ())))
    timeout = arguments.get("timeout")
    tty = scene.tool == "run_in_terminal"
    return CommandSpec(command=command, cwd=ROOT, timeout_s=timeout, tty=tty, accepts_input=tty)


@cache
def project() -> Path:
    """A copy of the demo's project, outside of any repository, for what the effects of its commands look at."""
    place = Path(tempfile.mkdtemp(prefix="whisper-scenes-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    copy = place / "garden"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for script in copy.glob("*.sh"):
        script.chmod(0o700)
    (copy / "build").mkdir()
    for page in ("index", "plants", "tools", "contact"):
        (copy / "build" / f"{page}.html").write_text(f"<h1>{page}</h1>\n")
    return copy


@dataclass
class Scenario:
    """Agents and a human act out scenes of the story, at a time that only moves when it is told to."""

    supervisor: InMemorySupervisor
    clock: ManualClock

    @classmethod
    def begin(cls) -> "Scenario":
        """Two agents are connected."""
        clock = ManualClock()
        supervisor = InMemorySupervisor(clock)
        supervisor.directories[ROOT] = str(project())
        supervisor.open(BUILDER, ROOT, "claude-code", "2.1.329")
        supervisor.open(RELEASER, ROOT, "codex", "0.169.0")
        return cls(supervisor, clock)

    def ask(self, scene_id: str, *risks: Risk) -> str:
        """An agent asks for the command of a scene."""
        scene = BY_ID[scene_id]
        spec = spec_of(scene)
        words = spec.command.words()
        program = f"{ROOT}/{words[0][2:]}" if words[0].startswith("./") else f"/usr/bin/{words[0]}"
        request = CallRequest(
            session_id="s1" if scene.agent == BUILDER else "s2",
            tool=scene.tool,
            arguments=scene.arguments,
            spec=spec,
            description=scene.arguments.get("description", ""),
        )
        reason = risks[0].sentence if risks else NO_RULE_MATCHES
        verdict = Verdict(kind="ask", reason=reason, risks=risks)
        commands = MEANINGS.get(scene_id, ())
        return self.supervisor.ask(request, verdict, Resolved(program=program, cwd=ROOT, commands=commands))

    def approve(self, call_id: str, edited: CommandSpec | None = None) -> None:
        """The human approves, and it starts."""
        decision = Approve(edited=edited)
        self.supervisor.happen(Decided(at=self.clock(), call_id=call_id, decision=decision, by=ME))
        self.supervisor.start(call_id)

    def deny(self, call_id: str, reason: str) -> None:
        """The human denies."""
        self.supervisor.happen(
            Decided(at=self.clock(), call_id=call_id, decision=Deny(reason=reason), by=ME),
            Finished(at=self.clock(), call_id=call_id, ending=Denied(by=ME, reason=reason)),
        )

    def print(self, call_id: str, scene_id: str) -> None:
        """The command writes what the story says."""
        printed = BY_ID[scene_id].printed
        self.supervisor.write(call_id, printed.out.encode())
        self.supervisor.write(call_id, printed.err.encode(), "err")

    def end(self, call_id: str, code: int = 0, wall_s: float = 1.3) -> None:
        """The command ends."""
        usage = Usage(wall_s=wall_s, user_s=wall_s / 3, system_s=wall_s / 20, max_rss_kib=3584)
        self.supervisor.finish(call_id, Exited(code=code), usage)


def workday() -> Scenario:
    """Some calls are over, one runs, one has left a server behind, three wait."""
    scenario = Scenario.begin()
    build = scenario.ask("build")
    scenario.clock.advance(4)
    scenario.approve(build)
    scenario.print(build, "build")
    scenario.clock.advance(1.3)
    scenario.end(build)
    scenario.clock.advance(40)
    test = scenario.ask("test")
    scenario.approve(test)
    scenario.print(test, "test")
    scenario.end(test, 1, 0.6)
    release = scenario.ask("release")
    scenario.clock.advance(9)
    edited = spec_of(BY_ID["release"]).model_copy(update={"command": Argv(program="./release.sh", args=("staging",))})
    scenario.approve(release, edited)
    scenario.print(release, "release")
    scenario.end(release, 0, 2.1)
    preview = scenario.ask("preview")
    scenario.approve(preview)
    scenario.print(preview, "preview")
    scenario.supervisor.leave_behind(preview, "/bin/sh ./serve.sh")
    scenario.end(preview, 0, 0.02)
    denied = scenario.ask("clean-by-name")
    scenario.deny(denied, "Keep what was built until the release is out.")
    crawl = scenario.ask("crawl")
    scenario.approve(crawl)
    scenario.print(crawl, "crawl")
    scenario.supervisor.write(crawl, b"\x1b[33mwarning:\x1b[0m /plants/ferns.html redirects twice\n", "err")
    scenario.clock.advance(33)
    scenario.ask(
        "clean",
        Risk(id="destructive", sentence="Deletes recursively without confirmation (`rm -rf`)", span=(0, 6)),
    )
    scenario.clock.advance(21)
    scenario.ask("fix")
    scenario.clock.advance(8)
    scenario.ask("tag")
    scenario.clock.advance(4)
    return scenario


def with_some_aside() -> Scenario:
    """A working day on which two calls are set aside for later; the agent of one goes on meanwhile."""
    scenario = workday()
    for call_id in ("7", "9"):
        scenario.supervisor.happen(SetAside(at=scenario.clock(), call_id=call_id, by=ME))
        scenario.clock.advance(70)
    scenario.supervisor.happen(AgentGaveUp(at=scenario.clock(), call_id="7", why=WENT_ON))
    return scenario


def building() -> Scenario:
    """A build runs with a progress bar; a release waits for a decision."""
    scenario = Scenario.begin()
    build = scenario.ask("build")
    scenario.clock.advance(5)
    scenario.approve(build)
    printed = BY_ID["build"].printed
    until = printed.out.index("\r", printed.out.index(" 70%"))
    scenario.supervisor.write(build, printed.out[:until].encode())
    scenario.supervisor.write(build, printed.err.encode(), "err")
    scenario.clock.advance(2)
    scenario.ask("release")
    scenario.clock.advance(1)
    return scenario


CROWD: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("s1", "git add -A && git commit -m 'Ferns'", ("git commit",), ""),
    ("s2", "git push origin release", ("git push",), "network"),
    ("s1", "npm install plant-icons", ("npm install",), "network"),
    ("s3", "curl -s https://garden.example/map", ("curl",), "network"),
    ("s2", "git push origin --tags", ("git push",), "network"),
    ("s1", "rm -rf node_modules", ("rm",), "destructive"),
    ("s3", "curl -s https://garden.example/feed", ("curl",), "network"),
    ("s1", "npm install leaf-fonts", ("npm install",), "network"),
    ("s3", "sed -i s/Fern/Ferns/ plants.md", ("sed",), ""),
)
"""Who asks for which line, how it begins as the policy reads it, and the id of its risk."""
RISK_SENTENCES = {"network": "Talks to other machines", "destructive": "Deletes recursively"}


def crowd() -> Scenario:
    """Three agents ask for nine commands, some of them alike."""
    scenario = Scenario.begin()
    scenario.supervisor.open("link checker", ROOT, "gemini-cli", "0.61.0")
    for session, text, beginning, risk_id in CROWD:
        risks = (Risk(id=risk_id, sentence=RISK_SENTENCES[risk_id]),) if risk_id else ()
        reason = risks[0].sentence if risks else NO_RULE_MATCHES
        prefixes = tuple(tuple(words.split()) for words in beginning)
        verdict = Verdict(kind="ask", reason=reason, risks=risks, prefixes=prefixes)
        spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
        request = CallRequest(session_id=session, tool="run_shell_command", arguments={"command": text}, spec=spec)
        scenario.supervisor.ask(request, verdict, Resolved(program="/usr/bin/bash", cwd=ROOT))
        scenario.clock.advance(17)
    return scenario


def long_script() -> Scenario:
    """An agent asks for a script that is longer than the screen."""
    scenario = Scenario.begin()
    lines = ["set -eu", "cd plants", *(f"./label.sh bed-{bed:02} --size {bed % 5 + 1}" for bed in range(1, 71)), "sync"]
    spec = CommandSpec(command=Shell(text="\n".join(lines)), cwd=ROOT)
    request = CallRequest(
        session_id="s1", tool="run_shell_command", arguments={}, spec=spec, description="Label every bed of the garden"
    )
    scenario.supervisor.ask(request, resolved=Resolved(program="/usr/bin/bash", cwd=ROOT))
    scenario.clock.advance(6)
    return scenario


def long_output(lines: int = 500) -> Scenario:
    """Call 1 runs and has written numbered lines to both streams."""
    scenario = Scenario.begin()
    call = scenario.ask("build")
    scenario.approve(call)
    scenario.supervisor.write(call, b"".join(b"out %d\n" % number for number in range(lines)))
    scenario.supervisor.write(call, b"".join(b"err %d\n" % number for number in range(lines)), "err")
    return scenario
