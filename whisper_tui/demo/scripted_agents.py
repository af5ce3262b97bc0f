"""The agents of the demo, and their workspace: they submit the calls of the story and wait like real agents."""

import asyncio
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_tui.demo.story import BUILDER, END, RELEASER, SCENES, Agent, Denies, StoryScene
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import (
    CallRequest,
    CarriedOut,
    ClientInfo,
    CommandSpec,
    FileEdits,
    Function,
    ReplaceText,
    SessionHello,
    WriteFile,
)
from whisper_tui.model.ending import Denied, HandedOver
from whisper_tui.model.state import CallRecord, Ended, Held, Running, Unjudged, Waiting
from whisper_tui.tools import (
    Answer,
    CommandTool,
    ExecuteCommandTool,
    RunShellCommandTool,
    ToolContext,
    ToolFailure,
    ToolRegistry,
    UnknownTool,
)
from whisper_tui.tools.agent_text import agent_note

PROJECT = Path(__file__).with_name("project")
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Workspace:
    """The directories of the demo."""

    place: Path
    """The temporary directory that contains all others, with links resolved."""
    step_s: float
    """Seconds of pause between two lines of the project's scripts."""

    @property
    def root(self) -> Path:
        """The directory of the project."""
        return self.place / "garden"

    @property
    def instance(self) -> Path:
        """The directory of the demo's own supervisor."""
        return self.place / "whisper"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the demo's commands."""
        # Nothing of the user's but PATH: the recordings look alike everywhere, and no setting of a shell interferes.
        return {
            "PATH": os.environ.get("PATH", USUAL_PATH),
            "HOME": str(self.place / "home"),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "DEMO_PAUSE": f"{self.step_s:g}",
        }


@contextmanager
def temporary_workspace(*, step_s: float) -> Iterator[Workspace]:
    """Yield a fresh copy of the demo's project, and remove everything at the end of the block."""
    # Resolved: on macOS the temporary directory is behind a link, and a command's directory is judged as it resolves.
    place = Path(tempfile.mkdtemp(prefix="whisper-")).resolve()
    try:
        workspace = Workspace(place=place, step_s=step_s)
        (place / "home").mkdir(mode=0o700)
        shutil.copytree(PROJECT, workspace.root, ignore=shutil.ignore_patterns("__pycache__"))
        # An installation from a wheel need not keep the executable bits of data files.
        for script in workspace.root.glob("*.sh"):
            script.chmod(stat.S_IRWXU)
        yield workspace
    finally:
        _open_directories(place)
        shutil.rmtree(place, ignore_errors=True)


def _open_directories(place: Path) -> None:
    """Let the owner remove everything: the directories that a preview's overlay leaves have no permissions."""
    for directory, names, _ in os.walk(place):
        for path in (Path(directory, name) for name in names):
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(stat.S_IRWXU)


class TerminalTool(ExecuteCommandTool):
    """A tool that runs one program in a terminal that the human can type into."""

    name = "run_in_terminal"
    description = "Runs a program in a terminal of its own. The human can answer its questions."

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema = super().parameters_schema
        words = {"type": "string", "description": "What the command is for, for the human who is asked."}
        return {**schema, "properties": {**schema["properties"], "description": words}}

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """Return the program to run in a terminal, without a timeout."""
        # A human may take any time to answer its questions.
        return super().spec(arguments).model_copy(update={"tty": True, "accepts_input": True, "timeout_s": None})


class OwnTools:
    """The tools that an agent carries out itself once they are approved: it edits files, and asks another server."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def request(self, scene: StoryScene, session_id: str) -> CallRequest | None:
        """Return the request for the call of a scene. None: it is a command, which the supervisor runs."""
        arguments = {key: value for key, value in scene.arguments.items() if key != "description"}
        command: CarriedOut
        if scene.tool == "Edit":
            arguments["file_path"] = path = str(self._root / arguments["file_path"])
            change = ReplaceText(path=path, old=arguments["old_string"], new=arguments["new_string"])
            command = FileEdits(tool=scene.tool, changes=(change,))
        elif scene.tool.startswith("mcp__"):
            targets = tuple(scene.tool.split("__")[1:])
            command = Function(tool=scene.tool, arguments=arguments, about="server", targets=targets)
        else:
            return None
        return CallRequest(
            session_id=session_id,
            tool=scene.tool,
            arguments=arguments,
            spec=CommandSpec(command=command, cwd=str(self._root)),
            description=scene.arguments.get("description", ""),
            ticket=secrets.token_hex(8),
            by_agent=True,
        )

    def carry_out(self, command: CarriedOut) -> str:
        """Do what was approved. Returns the answer of the tool: the content of the file that it has changed."""
        if isinstance(command, Function):
            path = self._root / "shop.json"
            item, price = command.arguments["item"], command.arguments["price"]
            path.write_text(json.dumps({item: f"{price} {command.arguments['currency']}"}) + "\n")
            return path.read_text()
        for change in command.changes:
            path = Path(change.path)
            if isinstance(change, WriteFile):
                path.write_text(change.content)
            elif isinstance(change, ReplaceText):
                path.write_text(path.read_text().replace(change.old, change.new, 1))
        return path.read_text()


@dataclass(frozen=True)
class DemoAgent:
    """One connected agent of the story."""

    supervision: Supervision
    session_id: str
    tools: ToolRegistry
    own: OwnTools

    async def ask(self, scene: StoryScene) -> str:
        """Submit the call of a scene. Returns its id."""
        own = self.own.request(scene, self.session_id)
        return await self.supervision.submit(own or self._tool(scene).request(scene.arguments))

    async def hear(self, scene: StoryScene, call_id: str) -> Answer | ToolFailure:
        """Wait for the end of the call, carry out what the agent does itself, and return the answer to the agent."""
        record = await self.finish(call_id)
        try:
            if record.function is None:
                return await self._tool(scene).answer(record)
            ending = record.state.ending if isinstance(record.state, Ended) else None
            if not isinstance(ending, HandedOver):
                return ToolFailure(ending.reason if isinstance(ending, Denied) else "the call was not approved")
            said = await asyncio.to_thread(self.own.carry_out, record.function)
            return Answer({"stdout": said, "stderr": ""}, said, agent_note(record))
        except ToolFailure as failure:
            return failure

    async def finish(self, call_id: str) -> CallRecord:
        """Wait for the end of a call; one that the agent carries out itself is handed over to it first."""
        while True:
            record = await self.supervision.decided(call_id)
            if isinstance(record.state, Held) and record.call.by_agent:
                record = await self.supervision.hand_over(call_id, record.call.ticket or "")
            # A file that has changed since the approval is asked about again.
            if not isinstance(record.state, Unjudged | Waiting):
                return await self.supervision.outcome(call_id)

    def _tool(self, scene: StoryScene) -> CommandTool:
        tool = self.tools.get_tool_by_name(scene.tool)
        if not isinstance(tool, CommandTool):
            raise UnknownTool(f"{scene.tool} runs no command")
        return tool


async def connect(supervision: Supervision, workspace: Workspace) -> dict[Agent, DemoAgent]:
    """Open a session for each agent of the story, with the usual tools and the demo's own."""
    return {agent: await _connect(supervision, workspace, agent) for agent in (BUILDER, RELEASER)}


async def _connect(supervision: Supervision, workspace: Workspace, agent: Agent) -> DemoAgent:
    session = await supervision.open_session(
        SessionHello(
            name=agent,
            root=str(workspace.root),
            client=ClientInfo(name="scripted agent"),
            environment=workspace.environment,
        )
    )
    # The usual tools come from the same classes as a real agent's, so that the demo shows the real answers.
    context = ToolContext(supervision, session)
    tools = ToolRegistry((ExecuteCommandTool(context), RunShellCommandTool(context), TerminalTool(context)))
    return DemoAgent(supervision, session.id, tools, OwnTools(workspace.root))


async def play_agent(
    supervision: Supervision, workspace: Workspace, submitted: dict[str, StoryScene] | None = None
) -> None:
    """Submit all calls of the story, at the pace of agents. Returns once the last call has ended.

    `submitted` receives the scene of each call by its id. Raises the first `WhisperError` that an agent meets.
    """
    found = {} if submitted is None else submitted
    agents = await connect(supervision, workspace)
    over: dict[str, asyncio.Future[CallRecord | None]] = {
        scene.id: asyncio.get_running_loop().create_future() for scene in SCENES
    }
    scenes = [asyncio.create_task(_play(agents[scene.agent], scene, over, found)) for scene in SCENES]
    try:
        await asyncio.gather(*scenes)
    finally:
        for scene in scenes:
            scene.cancel()


async def _play(
    demo_agent: DemoAgent,
    scene: StoryScene,
    over: dict[str, asyncio.Future[CallRecord | None]],
    submitted: dict[str, StoryScene],
) -> None:
    """Play one scene after the one that it follows; a scene that is not needed ends without a call."""
    before = await over[scene.follows] if scene.follows else None
    # An agent whose first wording was approved has no reason to try another one.
    if scene.only_if_denied and not _was_denied(before):
        over[scene.id].set_result(None)
        return
    await asyncio.sleep(scene.pause_s)
    call_id = await demo_agent.ask(scene)
    submitted[call_id] = scene
    await demo_agent.hear(scene, call_id)
    record = await demo_agent.supervision.outcome(call_id)
    over[scene.id].set_result(record)


BEGINNING = "Two agents work on a small site, and you decide. This line says what to try."


def caption(scene: StoryScene, record: CallRecord) -> str:
    """Return the line that tells a person about a call of the story: what to try, and later what became of it."""
    match record.state:
        case Waiting():
            return scene.caption
        case Running():
            return scene.running
        case Ended(ending=ending):
            planned = isinstance(ending, Denied) == isinstance(scene.move, Denies)
            return scene.after if planned else scene.otherwise
        case _:
            return ""


def captions(agents: "asyncio.Task[None]", submitted: Mapping[str, StoryScene]) -> Callable[[CallRecord | None], str]:
    """Return a function from the selected call to its caption. `agents` is done when the story is over."""

    def words(record: CallRecord | None) -> str:
        if agents.done():
            return END
        scene = submitted.get(record.id) if record is not None else None
        return caption(scene, record) if scene is not None and record is not None else BEGINNING

    return words


def _was_denied(record: CallRecord | None) -> bool:
    return record is not None and isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
