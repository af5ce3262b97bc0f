"""The answer to an ended call, made again by the code that answered its agent (decision 18)."""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from whisper_tui.agents.hook_formats import HookFormat
from whisper_tui.agents.known_clients import profile_behind
from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.call import FileEdits, Session
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Held
from whisper_tui.present.ending_text import AgentAnswer, AnswerPart, object_part
from whisper_tui.tools import Answer, CommandTool, SupervisedTool, ToolContext, ToolFailure, ToolRegistry, UnknownTool
from whisper_tui.tools.agent_text import OutputBudget, agent_note, captured_texts, failure_of
from whisper_tui.tools.exec_tool import ExecArguments, ExecCommandTool
from whisper_tui.tools.wait import request_of
from whisper_tui.transports.acp.acp_sessions import KEY_IN_EDITOR
from whisper_tui.transports.hook.exec_endpoint import QUEUED_S, program_end

MOST_OUTPUT = 1024 * 1024
"""Bytes of output that are read again for an answer without a budget of its own."""

NEAR_S = 0.5
"""Seconds around the end of a foreground window within which it is not known what came first."""

WithoutResult = Denied | Withdrawn | HandedOver | Lost

NO_ANSWER = "The call has not ended, so its agent has no result yet."
LEFT = "The agent no longer waited ({why}), so it has got this only if it asked again."
WITHDRAWN = "The call was withdrawn, usually because its agent no longer waited, so the agent may not have got this."
REMOVED = "Its output was removed from the disk, so the answer cannot be reproduced."
BY_ITSELF = "The agent's own program carried it out, so the result is not known here."
AT_DEADLINE = (
    "It waited for {waited:.0f} seconds. An answer at the deadline of the agent's program, which asks it to wait or to "
    "repeat the command, is not recorded."
)
RAN_ON = "It became a background task; the answer that its agent got at that moment is not recorded."
SHORTENED = "More than {most:,} bytes of output: the middle is left out here, and the program got all of it."
MAY_SHORTEN = "A program that uses the library may have asked for a shorter text than this."
NO_TOOL = "The tool {tool} is not installed here, so its answer cannot be reproduced."

EDIT = "A human had changed it; how its hook was told about the change is not recorded."
NEXT_DIRECTORY = "A note about the directory of the agent's next command, if there was one, is not recorded."
WAS_QUEUED = "It waited before it started, and notes about that in its output are not recorded."

IN_PIECES = "The agent read the output in pieces, in which the two streams may have been in another order."

SOON_S = 30.0
"""Seconds within which every client waits for an answer."""


@dataclass(frozen=True)
class AnswersAgain:
    """Makes answers again. It decides nothing, and starts nothing."""

    registry: Callable[[ToolContext], ToolRegistry]
    """Returns the tools of a session."""

    async def __call__(self, supervision: Supervision, record: CallRecord) -> AgentAnswer:
        """Return the answer to a call, as far as it is known. Raises `WhisperError`."""
        if not isinstance(record.state, Ended):
            return AgentAnswer(caveats=(NO_ANSWER,))
        ending = record.state.ending
        has_result = not isinstance(ending, WithoutResult)
        caveats = tuple(_delivery(record))
        if has_result and record.function is None and await output_was_removed(supervision, record):
            return AgentAnswer(caveats=(*caveats, REMOVED))
        session = await supervision.session(record.call.session_id)
        if (record.call.key or "").startswith(KEY_IN_EDITOR):
            told = await _in_editor(supervision, record, record.state)
        elif record.call.ticket is not None:
            told = await _by_hook(supervision, record, record.state, session)
        elif has_result and record.function is not None:
            return AgentAnswer(caveats=(*caveats, BY_ITSELF))
        else:
            told = await self._by_tool(supervision, record, record.state, session)
        return AgentAnswer(told.parts, (*caveats, *told.caveats))

    async def _by_tool(self, supervision: Supervision, record: CallRecord, end: Ended, session: Session) -> AgentAnswer:
        by_mcp = (record.call.key or "").startswith("mcp ")
        size = end.output.out + end.output.err
        cut = not by_mcp and size > MOST_OUTPUT
        budget = OutputBudget(MOST_OUTPUT) if cut else None
        if by_mcp:
            # The SDK takes half a second to import, in which a cockpit has to answer keys.
            await asyncio.to_thread(importlib.import_module, "whisper_tui.transports.mcp.mcp_calls")
            from whisper_tui.transports.mcp.mcp_calls import output_budget

            budget = output_budget(session.client)
        context = ToolContext(supervision, session, output_budget=lambda: budget)
        tool = _tool(self.registry(context), record.call.tool)
        if tool is None:
            return AgentAnswer(caveats=(NO_TOOL.format(tool=record.call.tool),))
        if isinstance(tool, ExecCommandTool) and _ran_on(record):
            return AgentAnswer(caveats=(RAN_ON,))
        answer: Answer | WhisperError
        try:
            answer = await _answer(tool, record, end)
        except WhisperError as error:
            answer = error
        if by_mcp and budget is not None:
            return AgentAnswer(_mcp_parts(tool, record, answer, budget))
        caveats = (*((SHORTENED.format(most=MOST_OUTPUT),) if cut else ()), *((MAY_SHORTEN,) if size else ()))
        return AgentAnswer(_program_parts(tool, answer), caveats)


def _delivery(record: CallRecord) -> list[str]:
    """Return what is not known about the way of an answer to its agent."""
    found = []
    if isinstance(record.state, Ended) and isinstance(record.state.ending, Withdrawn):
        found.append(WITHDRAWN)
    elif record.agent_gave_up is not None:
        found.append(LEFT.format(why=record.agent_gave_up))
    waited = (record.decided_at or record.call.submitted_at) - record.call.submitted_at
    if waited > SOON_S:
        found.append(AT_DEADLINE.format(waited=waited))
    return found


def _ran_on(record: CallRecord) -> bool:
    """True if a command may have become a task before it ended."""
    if not isinstance(record.state, Ended) or record.process is None:
        return False
    return record.state.at - record.process.started_at > ExecArguments.of(record.call.arguments).window_s - NEAR_S


def _tool(registry: ToolRegistry, name: str) -> SupervisedTool | None:
    try:
        tool = registry.get_tool_by_name(name)
    except UnknownTool:
        return None
    return tool if isinstance(tool, SupervisedTool) else None


async def _answer(tool: SupervisedTool, record: CallRecord, end: Ended) -> Answer:
    """Return the answer of a tool. Raises `WhisperError` if it was a failure."""
    # A function is never asked for its answer: that would run it.
    if record.function is not None and isinstance(end.ending, WithoutResult):
        raise failure_of(end.ending)
    if isinstance(tool, CommandTool):
        # The answer names what the command left behind, and that was alive then.
        left = tuple(process.model_copy(update={"alive": True}) for process in record.background)
        return await tool.answer(record.model_copy(update={"background": left}))
    if isinstance(tool, ExecCommandTool):
        return await tool.follow(request_of(record.call), record.id)
    raise ToolFailure(f"the tool {record.call.tool} has no answer that can be made again")


def _mcp_parts(
    tool: SupervisedTool, record: CallRecord, answer: Answer | WhisperError, budget: OutputBudget
) -> tuple[AnswerPart, ...]:
    from whisper_tui.transports.mcp.mcp_calls import answered, failed_by

    if isinstance(answer, WhisperError):
        result = failed_by(tool, answer, record.id)
    else:
        result = answered(answer, record.id, budget)
    parts = [AnswerPart("text", block.text) for block in result.content if block.type == "text"]
    if result.structured_content is not None:
        parts.append(object_part("structured content", result.structured_content))
    return (*parts, *((AnswerPart("marked as", "an error"),) if result.is_error else ()))


def _program_parts(tool: SupervisedTool, answer: Answer | WhisperError) -> tuple[AnswerPart, ...]:
    """Return the answer to the library or to `whisper-tui call`."""
    if isinstance(answer, WhisperError):
        shaped = tool.error_result(answer)
        return (AnswerPart("error", answer.sentence()) if shaped is None else object_part("result", shaped),)
    note = (AnswerPart("note", answer.told),) if answer.told is not None else ()
    return (*note, object_part("result", answer.result), AnswerPart("text", answer.text))


async def _in_editor(supervision: Supervision, record: CallRecord, end: Ended) -> AgentAnswer:
    """Return the answer to an agent that an editor has started: its terminal, its write, or its question."""
    from whisper_tui.transports.acp.acp_terminals import exit_of, words_without_output

    command = record.spec.command
    if record.call.ticket is not None:
        if isinstance(end.ending, HandedOver):
            return AgentAnswer(caveats=(BY_ITSELF,))
        if isinstance(end.ending, WithoutResult) and isinstance(command, FileEdits) and command.takes_result:
            return AgentAnswer((AnswerPart("error", failure_of(end.ending, command.kind).sentence()),))
        # The protocol has no place for more.
        return AgentAnswer((AnswerPart("outcome", "rejected"),))
    said = words_without_output(end)
    caveats: tuple[str, ...] = ()
    if not said:
        size = end.output.out + end.output.err
        caveats = (SHORTENED.format(most=MOST_OUTPUT),) if size > MOST_OUTPUT else ()
        out, err = await captured_texts(supervision, record, MOST_OUTPUT if caveats else None)
        note = agent_note(record)
        said = (f"[whisper_tui: {note}]\n" if note else "") + out + err
    exit_status = {name: value for name, value in exit_of(end).items() if value is not None}
    return AgentAnswer((AnswerPart("output", said), object_part("exit status", exit_status)), (*caveats, IN_PIECES))


async def _by_hook(supervision: Supervision, record: CallRecord, end: Ended, session: Session) -> AgentAnswer:
    """Return the answer to a command of an agent's own shell: of its hook, and of the program that ran it."""
    ending = end.ending
    profile = profile_behind(session.client.name) if session.client is not None else None
    if isinstance(ending, WithoutResult) and not isinstance(ending, HandedOver) and record.process is None:
        reason = failure_of(ending, record.call.spec.command.kind).message
        answer = profile.hook.deny(reason) if profile is not None else None
        printed = (AnswerPart("answer of the hook", answer.stdout or answer.stderr),) if answer is not None else ()
        return AgentAnswer((AnswerPart("reason of the denial", reason), *printed))
    # At the approval nothing was known yet about the end of the run.
    note = agent_note(record.model_copy(update={"state": Held(since=end.at)}))
    after = _told_after(profile.hook, agent_note(record) or "") if profile is not None else ""
    noted = (AnswerPart("note with the approval", note),) if note and not after else ()
    if isinstance(ending, HandedOver):
        # Whether the agent's tool got the edit depended on the files at that moment.
        return (
            AgentAnswer(caveats=(BY_ITSELF, EDIT))
            if record.function and record.edited
            else AgentAnswer(noted, (BY_ITSELF,))
        )
    dies = profile is None or not profile.hangs_on_signals
    size = end.output.out + end.output.err
    cut = size > MOST_OUTPUT
    out, err = await captured_texts(supervision, record, MOST_OUTPUT if cut else None)
    last = program_end(record, ending, dies=dies)
    said = f"whisper_tui: {last['said']}\n" if "said" in last else ""
    parts = [*noted, AnswerPart("standard output", out), AnswerPart("standard error", err + said)]
    named = {"code": "exit code", "signal": "signal"}
    parts += [AnswerPart(label, str(last[key])) for key, label in named.items() if key in last]
    parts.append(AnswerPart("answer of the hook after it", after))
    caveats = (*((SHORTENED.format(most=MOST_OUTPUT),) if cut else ()), *_unrecorded_notes(record))
    return AgentAnswer(tuple(part for part in parts if part.text), caveats)


def _told_after(hook: HookFormat, note: str) -> str:
    """Return the answer of the hook after a command that ran as it was approved. Empty: it has none."""
    return hook.after(min(hook.after_events), note).stdout if note and hook.explains_after else ""


def _unrecorded_notes(record: CallRecord) -> list[str]:
    found = [NEXT_DIRECTORY] if record.claim is not None and record.claim.follows else []
    started = record.process.started_at if record.process is not None else None
    if started is not None and started - (record.decided_at or started) > QUEUED_S:
        found.append(WAS_QUEUED)
    return found
