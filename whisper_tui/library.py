"""For authors of agents: a session with the user's supervisor, or with one inside their own program."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whisper_tui.config import find_home, load
from whisper_tui.config.file import ToolSettings
from whisper_tui.config.offered import offered
from whisper_tui.model.call import Session, SessionHello, Trust
from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.errors import AlreadyDecided, WhisperError
from whisper_tui.model.event import Judged
from whisper_tui.model.port import Supervision
from whisper_tui.model.sendable import sendable
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.policy.rules import NO_RULES, Rules
from whisper_tui.supervisor.core import Supervisor
from whisper_tui.supervisor.local import LocalExecutor
from whisper_tui.supervisor.state_directory import Occupation, prepare
from whisper_tui.tools import AITool, Answer, ToolContext, ToolFailure, ToolRegistry
from whisper_tui.tools.room import Room, shortened
from whisper_tui.wire.client import RemoteSupervision

LONGEST_TEXT = 30_000
"""Characters that a model is told about one call, if nothing else is said."""

REST = "ask for a part of it, for example a range of lines with a command like sed -n"

_ROOM: ContextVar[Room | None] = ContextVar("room", default=None)
"""How long the answer to this call may be. None: as long as it is."""

Decide = Callable[[CallRecord], Decision | Awaitable[Decision | None] | None]
"""Decides about a waiting call. None: it goes on waiting for somebody else."""


@dataclass(frozen=True)
class Agent:
    """One agent's session and its tools."""

    session: Session
    supervision: Supervision
    tools: ToolRegistry
    """The standard tools, those of installed packages, and yours; a tool added here is asked about like the others."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, for as long as a human takes, and return its result, with all output.

        What a model must know beside it, above all that a human changed the command before it ran, is in the result:
        under `told` where that is an object, in front where it is a text. Raises `ToolFailure` where nothing ran, of
        which `ArgumentError` is one, and what a tool raises.
        """
        answer = await self.answer(name, arguments)
        if answer.told is None:
            return answer.result
        match answer.result:
            case dict():
                return {"told": answer.told, **answer.result}
            case str():
                return f"{answer.told}\n{answer.result}"
            case result:
                return result

    async def answer(self, name: str, arguments: Mapping[str, Any], *, longest: int | None = None) -> Answer:
        """The same with what a model must know kept apart from the result; `failed` says whether that is a failure.

        `longest`: characters of the text; longer output has its middle left out. None: all of it.
        """
        room = Room(longest) if longest is not None else None
        before = _ROOM.set(room)
        try:
            answer = await self.tools.answer(name, dict(arguments))
        finally:
            _ROOM.reset(before)
        if room is None:
            return answer
        return replace(answer, text=shortened(answer.text, room.less(answer.told), REST))

    async def tell(self, name: str, arguments: Mapping[str, Any], *, longest: int = LONGEST_TEXT) -> str:
        """What a model is to read: the result as text, what it must know beside it, or why there is none.

        At most about `longest` characters: of long output the middle is left out. Raises `UnknownTool`, and what a tool
        of yours raises beside a `WhisperError`.
        """
        try:
            return (await self.answer(name, arguments, longest=longest)).for_model
        except ToolFailure as failure:
            return failure.sentence()


@asynccontextmanager
async def connect(
    name: str,
    *,
    root: str | os.PathLike[str] = ".",
    home: str | None = None,
    tools: Iterable[AITool] = (),
    trust: Trust = "untrusted_external",
    environment: Mapping[str, str] | None = None,
    hears: bool = False,
    start: bool = True,
) -> AsyncIterator[Agent]:
    """A session with the user's supervisor, which is started if none runs and `start` allows it.

    `name` is shown to the human; `root` is the workspace; `home` are other directories than the user's usual ones;
    `environment` is what commands inherit, None: that of this process; `hears` lets a human say something to the agent
    in the cockpit, which reads it with `agent.supervision.watch`. Raises `WhisperError`.
    """
    place = find_home(home, os.environ)
    settings = load(place).tools
    supervision = await RemoteSupervision.connect(place, start=start)
    try:
        async with _session(supervision, _hello(name, root, trust, environment, hears=hears), tools, settings) as agent:
            yield agent
    finally:
        await supervision.close()


@asynccontextmanager
async def in_process(
    name: str,
    *,
    decide: Decide,
    root: str | os.PathLike[str] = ".",
    home: str | None = None,
    rules: Rules = NO_RULES,
    tools: Iterable[AITool] = (),
    trust: Trust = "untrusted_external",
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Agent]:
    """A session with a supervisor inside this program, which ends with the block, and every command with it.

    `decide` takes the human's place. `home` keeps the journal and the output; None: a temporary directory.
    """
    with ExitStack() as held:
        chosen = home or held.enter_context(tempfile.TemporaryDirectory(prefix="whisper_tui."))
        place = find_home(chosen, {})
        prepare(place)
        held.enter_context(Occupation(place.state))
        supervisor = Supervisor(place, LocalExecutor(Path(place.state) / "runs"), rules=rules)
        await supervisor.open()
        deciding = asyncio.create_task(_decide_for_ever(supervisor, decide))
        try:
            async with _session(supervisor, _hello(name, root, trust, environment), tools, ToolSettings()) as agent:
                yield agent
        finally:
            deciding.cancel()
            await asyncio.wait([deciding])
            await supervisor.shutdown(end_runs=True)
            await supervisor.close()


def _hello(
    name: str,
    root: str | os.PathLike[str],
    trust: Trust,
    environment: Mapping[str, str] | None,
    *,
    hears: bool = False,
) -> SessionHello:
    return SessionHello(
        name=name,
        root=os.path.realpath(root),
        pid=os.getpid(),
        trust=trust,
        environment=sendable(os.environ if environment is None else environment),
        hears=hears,
    )


@asynccontextmanager
async def _session(
    supervision: Supervision, hello: SessionHello, tools: Iterable[AITool], settings: ToolSettings
) -> AsyncIterator[Agent]:
    session = await supervision.open_session(hello)
    registry = offered(settings, ToolContext(supervision, session, room=_ROOM.get))
    for tool in tools:
        registry.register_tool(tool)
    try:
        yield Agent(session, supervision, registry)
    finally:
        with suppress(WhisperError):
            await supervision.close_session(session.id, "the program is done")


async def _decide_for_ever(supervisor: Supervisor, decide: Decide) -> None:
    async for events in supervisor.watch():
        for call_id in dict.fromkeys(event.call_id for event in events if isinstance(event, Judged)):
            record = await supervisor.record(call_id)
            if not isinstance(record.state, Waiting):
                continue
            decision = decide(record)
            if isinstance(decision, Awaitable):
                decision = await decision
            if decision is not None:
                by = Decider(surface="library", who="the program")
                with suppress(AlreadyDecided):
                    await supervisor.decide(call_id, decision, by, record.seen_digest())
