"""The operations of the socket, derived from the API, and their requests and answers as lines."""

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails, from_json, to_json

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import InvalidRequest, WhisperError, error_from
from whisper_tui.model.phone import PhoneDesk, PhoneRole
from whisper_tui.model.value import LARGEST_NUMBER, Value, Whole
from whisper_tui.wire.server_state import RowSource

LONGEST_SENTENCE = 4096
"""The longest message or hint in characters, because it may repeat a part of the request."""


def line_of(content: dict[str, Any]) -> bytes:
    """Return an object as a line."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def error_line(error: WhisperError, request_id: int | None = None) -> bytes:
    """Return an error as an answer. Without an id it is about the connection itself."""
    content = {"kind": error.kind, "message": _clipped(error.message), "hint": _clipped(error.hint)}
    return line_of({"error": content} if request_id is None else {"id": request_id, "error": content})


def answer_line(request_id: int, member: str, body: bytes) -> bytes:
    """Return an answer whose member `ok` or `item` is the given JSON."""
    return b'{"id":%d,"%s":%s}\n' % (request_id, member.encode(), body)


def request_line(request_id: int, operation: str, arguments: bytes) -> bytes:
    """Return a request whose arguments are the given JSON."""
    return b'{"id":%d,"op":%s,"args":%s}\n' % (request_id, to_json(operation), arguments)


def error_in(content: dict[str, Any]) -> WhisperError | None:
    """Return the error in an answer, as an instance of its class. None: there is none."""
    told = content.get("error")
    if not isinstance(told, dict):
        return None
    message, hint = (_clipped(str(told.get(name, ""))) for name in ("message", "hint"))
    return error_from(str(told.get("kind", "")), message, hint)


def _clipped(sentence: str) -> str:
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    return f"{sentence[:LONGEST_SENTENCE]}… ({len(sentence) - LONGEST_SENTENCE:,} more characters)"


Guard = Literal["nobody", "decides", "own call", "own session", "own resume"]
"""The refused callers: none; commands and agents; or commands and agents without this session or call."""


_Model = TypeVar("_Model", bound=BaseModel)


class Arguments(Value):
    """The arguments of one operation. Bytes are sent as base64."""

    model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")


class Envelope(Value):
    """One request. The type of `args` depends on `op`."""

    id: Whole
    op: str
    args: dict[str, Any] = Field(default_factory=dict)


class Operation:
    """One operation of the API. Its types are made when they are used first: a client uses few of all operations."""

    def __init__(self, method: Callable[..., Any], guard: Guard, *, patient: bool) -> None:
        """`method`: of a protocol, whose name, parameters and result declare the operation."""
        self.name: str = method.__name__
        self.guard = guard
        self.streams = not inspect.iscoroutinefunction(method)
        """True if the operation sends items without end."""
        self.patient = patient or self.streams
        """True if it may wait long, and is cancelled with its caller. Other operations are always completed."""
        self._method = method

    @cached_property
    def arguments(self) -> type[Arguments]:
        """The arguments by name."""
        fields: dict[str, Any] = {
            parameter.name: (
                self._hints[parameter.name],
                ... if parameter.default is inspect.Parameter.empty else parameter.default,
            )
            for parameter in inspect.signature(self._method).parameters.values()
            if parameter.name != "self"
        }
        return create_model(f"{self.name}_arguments", __base__=Arguments, **fields)

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        """The type of the result, or of one item of a stream."""
        return TypeAdapter(self._value)

    @cached_property
    def request(self) -> type[BaseModel]:
        """An envelope with these arguments."""
        required = any(field.is_required() for field in self.arguments.model_fields.values())
        given: Any = (self.arguments, ... if required else self.arguments())
        return create_model(f"{self.name}_request", __base__=Envelope, args=given)

    @cached_property
    def answer(self) -> type[BaseModel]:
        """An envelope with the result as `ok`, or with an item of the stream as `item`."""
        member: dict[str, Any] = {"item" if self.streams else "ok": (self._value, ...)}
        return create_model(f"{self.name}_answer", __base__=Value, id=(int, ...), **member)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return typing.get_type_hints(self._method, include_extras=True)

    @property
    def _value(self) -> Any:
        result = self._hints["return"]
        return typing.get_args(result)[0] if self.streams else result


def _operation(method: Callable[..., Any], guard: Guard = "nobody", *, patient: bool = False) -> Operation:
    """Return the operation that a method of a protocol declares."""
    return Operation(method, guard, patient=patient)


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            _operation(Supervision.open_session, "own resume"),
            _operation(Supervision.session),
            _operation(Supervision.describe_session, "own session"),
            _operation(Supervision.say, "own session"),
            _operation(Supervision.close_session, "own session"),
            _operation(Supervision.submit, "own session"),
            _operation(Supervision.decided, patient=True),
            _operation(Supervision.claim, "own call"),
            _operation(Supervision.hand_over, "own call"),
            _operation(Supervision.started, patient=True),
            _operation(Supervision.begin_function, "own call", patient=True),
            _operation(Supervision.submit_and_begin, "own session"),
            _operation(Supervision.end_function, "own call"),
            _operation(Supervision.outcome, patient=True),
            _operation(Supervision.withdraw, "own call"),
            _operation(Supervision.leave, "own call"),
            _operation(Supervision.watch),
            _operation(Supervision.watch_board),
            _operation(Supervision.decide, "decides"),
            _operation(Supervision.set_aside, "decides"),
            _operation(Supervision.withdraw_yes, "decides"),
            _operation(Supervision.start_anyway, "decides"),
            _operation(Supervision.signal, "decides"),
            _operation(Supervision.pause, "decides"),
            _operation(Supervision.resume, "decides"),
            _operation(Supervision.write_stdin, "decides", patient=True),
            _operation(Supervision.resize, "decides"),
            _operation(Supervision.read_output),
            _operation(Supervision.output_file),
            _operation(Supervision.read_timeline),
            _operation(Supervision.terminal_sizes),
            _operation(Supervision.usage),
            _operation(Supervision.stalls),
            _operation(Supervision.echo),
            _operation(Supervision.record),
            _operation(Supervision.history),
            _operation(Supervision.grants),
            _operation(Supervision.would_cover),
            # Its diffs and scripts quote files that the agent's own sandbox may hide from it.
            _operation(Supervision.effects, "decides"),
            _operation(Supervision.file_versions, "decides"),
            _operation(Supervision.revert_edit, "decides"),
            _operation(Supervision.preview, "decides"),
            _operation(Supervision.drop_preview, "decides"),
            _operation(Supervision.preview_page, "decides"),
            _operation(Supervision.preview_versions, "decides"),
            _operation(Supervision.undo, "decides"),
            _operation(Supervision.undo_calls, "decides"),
            _operation(Supervision.drafts, "decides"),
            _operation(Supervision.start_draft, "decides"),
            _operation(Supervision.draft_page, "decides"),
            _operation(Supervision.draft_versions, "decides"),
            _operation(Supervision.apply_draft, "decides"),
            _operation(Supervision.drop_draft, "decides"),
            _operation(Supervision.set_unasked, "decides"),
            _operation(Supervision.mark_reviewed, "decides"),
            _operation(Supervision.revoke, "decides"),
            _operation(Supervision.denials),
            _operation(Supervision.deny_for_session, "decides"),
            _operation(Supervision.lift_denial, "decides"),
            _operation(Supervision.rule_files),
            _operation(Supervision.rule_list),
            _operation(Supervision.judge_command),
            _operation(Supervision.add_rule, "decides"),
            _operation(Supervision.replace_rule, "decides"),
            _operation(Supervision.try_rule, "decides"),
            _operation(Supervision.remove_rule, "decides"),
            _operation(Supervision.trust_project, "decides"),
            _operation(Supervision.trust_rules, "decides"),
            # They name the user's programs and habits, which are none of an agent's business.
            _operation(Supervision.settings, "decides"),
            _operation(Supervision.change_setting, "decides"),
            _operation(Supervision.prune, "decides"),
            _operation(Supervision.report_presence, "decides"),
            _operation(Supervision.connect_place, "decides", patient=True),
            _operation(Supervision.status),
            _operation(Supervision.shutdown, "decides"),
            _operation(RowSource.rows),
            _operation(RowSource.open_calls),
            _operation(RowSource.open_rows),
            _operation(PhoneDesk.phone_pairing_open, "decides"),
            _operation(PhoneDesk.phone_pairing, "decides"),
            _operation(PhoneDesk.phone_confirm, "decides"),
            _operation(PhoneDesk.phone_devices, "decides"),
            _operation(PhoneDesk.phone_revoke, "decides"),
        )
    }
)
"""Every operation by its name, but for those of phones."""

OF_DESK = frozenset(name for name in OPERATIONS if hasattr(PhoneDesk, name))
"""The operations that manage phones."""

PHONE_OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            # A page that a supervised command or an agent serves, or asks for, decides nothing (decision 13).
            _operation(PhoneRole.phone_device, "decides"),
            _operation(PhoneRole.phone_calls, "decides"),
            _operation(PhoneRole.phone_call, "decides"),
            _operation(PhoneRole.phone_begin, "decides"),
            _operation(PhoneRole.phone_decide, "decides"),
            _operation(PhoneRole.phone_refuse, "decides"),
            _operation(PhoneRole.phone_pair_begin, "decides"),
            _operation(PhoneRole.phone_pair, "decides"),
            _operation(PhoneRole.phone_sign_in_begin, "decides"),
            _operation(PhoneRole.phone_sign_in, "decides"),
            _operation(PhoneRole.phone_count, "decides"),
            _operation(PhoneRole.phone_pushing, "decides"),
            _operation(PhoneRole.phone_push_to, "decides"),
            _operation(PhoneRole.phone_wait, "decides", patient=True),
        )
    }
)
"""All that a connection with the role of phones can ask for; none of it can be asked for without that role."""


class Cancel(Value):
    """Cancels a request that is still waiting."""

    cancel: Whole


class BadLine(InvalidRequest):
    """An invalid request. `request_id` is None if the line has no usable id."""

    def __init__(self, message: str, *, request_id: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.request_id = request_id


def parse_line(
    line: bytes, operations: Mapping[str, Operation] = OPERATIONS
) -> tuple[Operation, int, Arguments] | Cancel:
    """Read one line of a client that may ask for these operations. Raises `BadLine`."""
    try:
        content = from_json(line)
    except ValueError as error:
        raise BadLine(f"this line is not JSON: {error}", hint="Send one JSON object per line") from error
    if not isinstance(content, dict):
        raise BadLine("a request must be a JSON object", hint='For example {"id": 1, "op": "status"}')
    if "cancel" in content:
        return _validated(Cancel, line, None)
    request_id = _request_id(content.get("id"))
    operation = operations.get(content["op"]) if isinstance(content.get("op"), str) else None
    if operation is None:
        asked = (
            f"there is no operation {content['op']!r}" if "op" in content else "the request names no operation ('op')"
        )
        raise BadLine(asked, request_id=request_id, hint=f"There are {', '.join(operations)}")
    request: Any = _validated(operation.request, line, request_id)
    return operation, request.id, request.args


def _request_id(named: Any) -> int | None:
    """Return the id of a request. None: an answer could not refer to it."""
    # Not isinstance: JSON's true is an int in Python, and a client could not match an answer by it.
    return named if type(named) is int and abs(named) <= LARGEST_NUMBER else None


def _validated(model: type[_Model], line: bytes, request_id: int | None) -> _Model:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        raise BadLine(explain(error), request_id=request_id) from error


def explain(error: ValidationError) -> str:
    """Describe the problems key by key, without values, which may be secret."""
    return "; ".join(_problem(problem) for problem in error.errors(include_url=False, include_input=False)[:5])


def _problem(problem: ErrorDetails) -> str:
    where = ".".join(map(str, problem["loc"])) or "the request"
    match problem["type"]:
        case "extra_forbidden":
            return f"{where}: unknown key"
        case "missing":
            return f"{where}: missing"
        case _:
            return f"{where}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
