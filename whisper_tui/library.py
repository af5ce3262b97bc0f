"""For authors of agents: a session with the user's supervisor, or with one inside their own program."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from types import MappingProxyType
from typing import Any

from whisper_tui.config import find_directories, load
from whisper_tui.config.configuration import ToolSettings
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import Session, SessionHello, Trust
from whisper_tui.model.decision import Decider, Decision, Deny
from whisper_tui.model.errors import AlreadyDecided, WhisperError
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import sendable
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.places.place_settings import PlaceSettings, read_place
from whisper_tui.supervisor.places.placed_executors import PlacedExecutors
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.runs.output_files import LocalOutput
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories, StateDirectoryLock, prepare
from whisper_tui.tools import AITool, Answer, ToolContext, ToolFailure, ToolRegistry, standard_registry
from whisper_tui.tools.agent_text import OutputBudget, shortened
from whisper_tui.tools.supervised_tool import ApprovedArguments, approved_call
from whisper_tui.wire.client import SupervisorClient

LONGEST_TEXT = 30_000
"""Characters of the text for a model about one call, unless the caller chooses another limit."""

# A context variable, because one registry serves concurrent calls with different limits.
_BUDGET: ContextVar[OutputBudget | None] = ContextVar("room", default=None)
"""Length limit of the answer to the current call. None: unlimited."""

_PLACE: ContextVar[str] = ContextVar("place", default="")
"""The place of the current call. Empty: the call does not say."""

NO_PLACES: Mapping[str, Mapping[str, str]] = MappingProxyType({})
"""No places but this machine."""

Decide = Callable[[CallRecord], Decision | Awaitable[Decision | None] | None]
"""Decides about a waiting call. None: the call goes on waiting."""


def noted(result: Any, told: str | None) -> Any:
    """Return the result of a tool with a note for the model: under `told` in an object, at the beginning of a text."""
    match result:
        case dict() if told is not None:
            return {"told": told, **result}
        case str() if told is not None:
            return f"{told}\n{result}"
        case _:
            return result


@dataclass(frozen=True)
class Agent:
    """One agent's session and its tools."""

    session: Session
    supervision: Supervision
    tools: ToolRegistry
    """The standard tools, those of installed packages, and yours; a tool added here is asked about like the others."""

    async def call(self, name: str, arguments: Mapping[str, Any], *, place: str = "") -> Any:
        """Call a tool, wait for the human's decision, and return the tool's result with all output.

        A note for the model, for example that a human changed the command, is in the result: under `told` in an
        object, at the beginning of a text. Raises `ToolFailure` if nothing ran (`ArgumentError` is one), and whatever
        the tool raises. `place`: as for `answer`.
        """
        answer = await self.answer(name, arguments, place=place)
        return noted(answer.result, answer.told)

    async def answer(
        self, name: str, arguments: Mapping[str, Any], *, longest: int | None = None, place: str = ""
    ) -> Answer:
        """Call a tool and return an `Answer`: the result, the note for the model, and `failed`.

        `longest` limits the characters of the text; the middle of longer output is left out. None: no limit. `place`:
        where the command runs, `here` for this machine; empty: as the session, or a rule of the user, says.
        """
        room = OutputBudget(longest) if longest is not None else None
        before, elsewhere = _BUDGET.set(room), _PLACE.set(place)
        try:
            answer = await self.tools.answer(name, dict(arguments))
        finally:
            _BUDGET.reset(before)
            _PLACE.reset(elsewhere)
        if room is None:
            return answer
        return replace(answer, text=shortened(answer.text, room.less(answer.told)))

    async def tell(
        self, name: str, arguments: Mapping[str, Any], *, longest: int = LONGEST_TEXT, place: str = ""
    ) -> str:
        """Call a tool and return the text for a model: a note and the result, or the reason why nothing ran.

        It has about `longest` characters at most; the middle of longer output is left out. Raises `UnknownTool`, and
        errors of your own tools that are no `WhisperError`. `place`: as for `answer`.
        """
        try:
            return (await self.answer(name, arguments, longest=longest, place=place)).for_model
        except ToolFailure as failure:
            return failure.sentence()

    def approved(
        self, tool: str, arguments: Mapping[str, Any], description: str = "", *, hosts: Iterable[str] = ()
    ) -> AbstractAsyncContextManager[ApprovedArguments]:
        """Ask about something that your program does itself, and enter the block once it may:

        `async with agent.approved("send_mail", {"to": "a@b.org"}, "Invite the guests") as arguments: ...`

        Use the arguments of the block, because the human may have changed them; `arguments.told` is the note for the
        model. `hosts` makes it a call to the web: the names of all hosts that it reaches. The journal keeps when
        the block ended, and whether it raised. Raises `ToolFailure` if the call is denied, refused or withdrawn.
        """
        context = ToolContext(self.supervision, self.session)
        return approved_call(context, tool, arguments, description, hosts)


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
    place: str = "",
) -> AsyncIterator[Agent]:
    """Open a session with the user's supervisor; `start` one if none runs and the user has not stopped it.

    `name` is shown to the human. `root` is the workspace. `home` chooses another instance. `environment` is inherited
    by commands; None means that of this process. With `hears`, a human can send the agent messages in the cockpit,
    which it reads with `agent.supervision.watch`. `place`: where the commands of the session run, if they name no other
    place; empty means this machine. Raises `WhisperError`.
    """
    directories = find_directories(home, os.environ)
    settings = load(directories)
    supervision = await SupervisorClient.connect(
        directories, start=start, for_agent=True, local_output=LocalOutput(directories.state)
    )
    hello = _hello(name, root, trust, environment, hears=hears, place=place)
    try:
        async with _session(supervision, hello, tools, settings.tools, settings.place_names) as agent:
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
    place: str = "",
    places: Mapping[str, Mapping[str, str]] = NO_PLACES,
) -> AsyncIterator[Agent]:
    """Open a session with a supervisor inside this program. It ends with the block, and so do its commands.

    `decide` decides in place of a human. If it raises, the call is denied, and the error is raised when the block ends.
    `home` keeps the journal and the output; None: a temporary directory. `places`: the tables `[places.NAME]` of a
    configuration; `place`: where the commands of the session run if they name no other one.
    """
    with ExitStack() as held:
        chosen = home or held.enter_context(tempfile.TemporaryDirectory(prefix="whisper_tui."))
        prepare(directories := find_directories(chosen, {}))
        held.enter_context(StateDirectoryLock(directories.state))
        supervisor = _supervisor(directories, rules, tuple(starmap(read_place, places.items())))
        await supervisor.open()
        failures: list[Exception] = []
        deciding = asyncio.create_task(_decide_for_ever(supervisor, decide, failures))
        hello = _hello(name, root, trust, environment, place=place)
        try:
            async with _session(supervisor, hello, tools, ToolSettings(), tuple(places)) as agent:
                yield agent
        finally:
            deciding.cancel()
            # The decisions end before the supervisor does, or one would fail with a closed journal.
            await asyncio.wait([deciding])
            await supervisor.shutdown(end_runs=True)
            await supervisor.close()
        if failures:
            raise failures[0]


def _supervisor(directories: Directories, rules: Rules, places: tuple[PlaceSettings, ...]) -> Supervisor:
    runs = Path(directories.state) / "runs"
    here = LocalExecutor(runs)
    executor = PlacedExecutors(here, places, runs) if places else here
    return Supervisor(directories, executor, rules=rules, places=places)


def _hello(
    name: str,
    root: str | os.PathLike[str],
    trust: Trust,
    environment: Mapping[str, str] | None,
    *,
    place: str = "",
    hears: bool = False,
) -> SessionHello:
    return SessionHello(
        name=name,
        root=os.path.realpath(root),
        pid=os.getpid(),
        trust=trust,
        environment=sendable(os.environ if environment is None else environment),
        hears=hears,
        ends_with_connection=True,
        place=place,
    )


@asynccontextmanager
async def _session(
    supervision: Supervision,
    hello: SessionHello,
    tools: Iterable[AITool],
    settings: ToolSettings,
    places: Sequence[str],
) -> AsyncIterator[Agent]:
    session = await supervision.open_session(hello)
    context = ToolContext(supervision, session, output_budget=_BUDGET.get, place=_PLACE.get)
    registry = standard_registry(context, **settings.offered, places=places)
    for tool in tools:
        registry.register_tool(tool)
    try:
        yield Agent(session, supervision, registry)
    finally:
        with suppress(WhisperError):
            await supervision.close_session(session.id, "the program is done")


async def _decide_for_ever(supervisor: Supervisor, decide: Decide, failures: list[Exception]) -> None:
    by = Decider(surface="library", who="the program")
    async for events in supervisor.watch():
        for call_id in dict.fromkeys(event.call_id for event in events if isinstance(event, Judged)):
            record = await supervisor.record(call_id)
            if not isinstance(record.state, Waiting):
                continue
            try:
                decision = decide(record)
                if isinstance(decision, Awaitable):
                    decision = await decision
            except Exception as error:  # noqa: BLE001  otherwise the agent would wait for ever
                failures.append(error)
                decision = Deny(reason=f"the program that decides has failed: {type(error).__name__}")
            if decision is not None:
                with suppress(AlreadyDecided):
                    await supervisor.decide(call_id, decision, by, record.seen_digest())
