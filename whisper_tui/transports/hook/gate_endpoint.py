"""The supervisor's end of the gate: a command that came to a client's shell without an approval becomes a call."""

import json
from typing import Any

from pydantic import ValidationError

from whisper_tui.agents.agent_tools import Content
from whisper_tui.agents.hook_formats import HookAnswer, HookRequest
from whisper_tui.model.call import Shell
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.transports.hook.hook_endpoint import REFUSED, HookEndpoint, HookQuestion, QuestionHello, first_problem


class GateHello(QuestionHello):
    """The hello of the gate: the command that its client wants to run, and the time to answer."""

    door: str = "gate"
    version: int = HELLO_VERSIONS["gate"]
    command: str
    cwd: str
    session: str = ""
    """The client's own id of its session. Empty: the client does not say."""


class GateQuestion(HookQuestion):
    """One command at the gate. It is judged as if the client's hook had asked about it."""

    past_hook = True

    async def answer(self) -> HookAnswer:
        """Wait for the decision until the deadline. Raises `WhisperError` for an invalid request."""
        said = json.loads(self._hello.input)
        if not said["cwd"].startswith("/") or "\0" in said["cwd"] + said["command"]:
            raise InvalidRequest("the gate's request needs an absolute directory, and text without null bytes")
        asked = HookRequest(
            session=said["session"],
            tool=self._client.shell_tool,
            tool_input={"command": said["command"]},
            command=Shell(text=said["command"]),
            cwd=said["cwd"],
        )
        self._what_ran.held_at_gate(self._client, self._session_name(asked.session), said["command"])
        return await self.answer_to(asked)

    def allow_answer(self, _asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the line that starts the approved command."""
        return HookAnswer(stdout=f"{(arguments or {})['command']}\n", stderr=f"whisper_tui: {note}\n" if note else "")

    def deny_answer(self, reason: str) -> HookAnswer:
        """Return the reason, which the client shows its model as the command's output."""
        return HookAnswer(stderr=f"whisper_tui: {reason}\n", code=REFUSED)


def as_hook(hello: dict[str, Any]) -> dict[str, Any]:
    """Return the hello of a gate as that of a hook. Raises `InvalidRequest`."""
    try:
        said = GateHello.model_validate(hello)
    except ValidationError as error:
        raise InvalidRequest(f"the gate's hello is wrong: {first_problem(error)}") from error
    asked = said.model_dump(include={"command", "cwd", "session"})
    return {**said.model_dump(include=set(QuestionHello.model_fields)), "input": json.dumps(asked)}


class GateEndpoint(HookEndpoint):
    """Answers gates over one supervision."""

    def question(self, hello: dict[str, Any]) -> HookQuestion:
        """Return the request of a hello. Raises `InvalidRequest`."""
        return GateQuestion(self._supervision, as_hook(hello), self._following, self._decisions, self._what_ran)
