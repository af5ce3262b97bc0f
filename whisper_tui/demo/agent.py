"""The demo's agents: they connect, ask for what the story says, and wait for the answer like any other agent."""

import asyncio
from dataclasses import dataclass

from whisper_tui.demo.story import BUILDER, RELEASER, SCENES, Agent, Scene
from whisper_tui.demo.terminal_tool import TerminalTool
from whisper_tui.demo.workspace import Workspace
from whisper_tui.model.call import ClientInfo, SessionHello
from whisper_tui.model.ending import Denied
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Ended
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


@dataclass(frozen=True)
class Player:
    """One connected agent of the story."""

    supervision: Supervision
    session_id: str
    tools: ToolRegistry

    async def ask(self, scene: Scene) -> str:
        """Hand in the call of a scene. Returns its id."""
        return await self.supervision.submit(self._tool(scene).request(scene.arguments))

    async def hear(self, scene: Scene, call_id: str) -> Answer | ToolFailure:
        """Wait for the end of the call, for as long as a human takes, and return what the agent is told."""
        record = await self.supervision.outcome(call_id)
        try:
            return await self._tool(scene).answer(record)
        except ToolFailure as failure:
            return failure

    def _tool(self, scene: Scene) -> CommandTool:
        tool = self.tools.get_tool_by_name(scene.tool)
        if not isinstance(tool, CommandTool):
            raise UnknownTool(f"{scene.tool} runs no command")
        return tool


async def connect(supervision: Supervision, workspace: Workspace) -> dict[Agent, Player]:
    """Open a session for each agent of the story, with the usual tools and the demo's own."""
    return {agent: await _connect(supervision, workspace, agent) for agent in (BUILDER, RELEASER)}


async def _connect(supervision: Supervision, workspace: Workspace, agent: Agent) -> Player:
    session = await supervision.open_session(
        SessionHello(
            name=agent,
            root=str(workspace.root),
            client=ClientInfo(name="scripted agent"),
            environment=workspace.environment,
        )
    )
    context = ToolContext(supervision, session)
    tools = ToolRegistry((ExecuteCommandTool(context), RunShellCommandTool(context), TerminalTool(context)))
    return Player(supervision=supervision, session_id=session.id, tools=tools)


async def play_agent(supervision: Supervision, workspace: Workspace) -> None:
    """Ask for everything in the story, at the pace of agents. Returns once the last call has its ending.

    Raises the first `WhisperError` that an agent meets.
    """
    players = await connect(supervision, workspace)
    over: dict[str, asyncio.Future[CallRecord | None]] = {
        scene.id: asyncio.get_running_loop().create_future() for scene in SCENES
    }
    scenes = [asyncio.create_task(_play(players[scene.agent], scene, over)) for scene in SCENES]
    try:
        await asyncio.gather(*scenes)
    finally:
        for scene in scenes:
            scene.cancel()


async def _play(player: Player, scene: Scene, over: dict[str, asyncio.Future[CallRecord | None]]) -> None:
    """One scene; what it follows comes first, and a scene that is not needed is over without a call."""
    before = await over[scene.follows] if scene.follows else None
    if scene.only_if_denied and not _was_denied(before):
        over[scene.id].set_result(None)
        return
    await asyncio.sleep(scene.pause_s)
    record = await player.supervision.outcome(await player.ask(scene))
    over[scene.id].set_result(record)


def _was_denied(record: CallRecord | None) -> bool:
    return record is not None and isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
