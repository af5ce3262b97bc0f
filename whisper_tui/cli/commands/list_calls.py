"""`list`, `ps`, `history` and `show`: calls, one line each or one in full."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.output_format import (
    Table,
    cannot_work,
    command_line,
    gravest,
    outcome,
    print_json,
    print_table,
    risk_style,
    shows_colours,
    since,
    standing,
    state,
    styled,
    styled_diff,
)
from whisper_tui.cli.subcommand import Options, Subcommands, home_of, reader_of, supervisor_of
from whisper_tui.model.errors import InvalidRequest, UnknownCall, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.present.column_words import risk_sign
from whisper_tui.present.quantities import age
from whisper_tui.wire.light_client import LightClient

if TYPE_CHECKING:
    from whisper_tui.config.configuration import ToolSettings
    from whisper_tui.model.api import Supervision
    from whisper_tui.model.state import CallRecord
    from whisper_tui.present.ending_text import AgentAnswer, AnswerReader
    from whisper_tui.system.state_directory import Directories
    from whisper_tui.tools import ToolContext, ToolRegistry

Row = dict[str, Any]
Lines = Iterator[tuple[str, ...]]


def add_listing(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    listed = verbs.add("list", "show the calls that wait for a human, are set aside, are queued or run", _list)
    listed.add_argument("--json", action="store_true", help="print one array of objects")
    listed.add_argument("--wait", action="store_true", help="first wait until a call waits for a human")
    running = verbs.add("ps", "list running commands and their background processes", _ps)
    running.add_argument("--json", action="store_true", help="print one array of objects")
    history = verbs.add("history", "show earlier calls, newest first", _history)
    history.add_argument(
        "action",
        nargs="?",
        choices=("verify", "refused", "rules"),
        help="verify: verify the hash chain of the journal; refused: show refused attempts to decide; "
        "rules: show how the files of rules changed, and who trusted that",
    )
    history.add_argument("--head", metavar="END", help="with verify: an end that verify printed earlier")
    history.add_argument("--limit", type=int, default=50, metavar="N", help="at most N calls (default: 50)")
    history.add_argument("--session", metavar="NAME", help="only calls of the sessions with this name or id")
    history.add_argument("--text", default="", metavar="TEXT", help="only calls that mention this text")
    history.add_argument("--json", action="store_true", help="print one array of objects")


def _list(options: Options) -> int:
    if options.wait:
        _wait_for_a_call(options)
    with reader_of(options) as supervisor:
        if supervisor is None:
            return _print(options, LISTED, _listed, [])
        status = supervisor.ask("status")
        if status["problem"] is not None:
            sys.stderr.write(f"whisper-tui: {cannot_work(status['problem'])}\n")
        for sentence in status["unguarded"]:
            sys.stderr.write(f"whisper-tui: {visible(sentence)}\n")
        queued = dict[str, str]()
        if options.json:
            print_json([row for rows in _open_rows(supervisor, queued, brief=False) for row in rows])
        else:
            table = Table(LISTED)
            for rows in _open_rows(supervisor, queued, brief=True):
                table.print(_listed(rows))
                # Who looks at very many calls sees the first of them at once.
                sys.stdout.flush()
    for reason, call_id in queued.items():
        why = f"call {call_id} is queued: {visible(reason)} (whisper-tui start {call_id} starts it anyway)"
        sys.stderr.write(f"whisper-tui: {why}\n")
    return 0


FIRST_ROWS, ROWS_AT_ONCE = 100, 1000
"""Calls that are asked for at first, and later, so that the first ones appear at once."""


def _open_rows(supervisor: LightClient, queued: dict[str, str], *, brief: bool) -> Iterator[list[Row]]:
    """Yield the calls that wait, are queued or run, in parts, and add the first `queued` call of each reason."""
    for rows in _parts_of_rows(supervisor, brief=brief):
        for row in rows:
            if row["state"] == "queued" and row["reason"]:
                queued.setdefault(row["reason"], row["id"])
        yield rows


def _parts_of_rows(supervisor: LightClient, *, brief: bool) -> Iterator[list[Row]]:
    first = supervisor.ask("open_calls", limit=FIRST_ROWS)
    yield supervisor.ask("open_rows", call_ids=first, brief=brief)
    if len(first) < FIRST_ROWS:
        return
    printed = set(first)
    rest = [call_id for call_id in supervisor.ask("open_calls") if call_id not in printed]
    parts = (rest[at : at + ROWS_AT_ONCE] for at in range(0, len(rest), ROWS_AT_ONCE))
    yield from supervisor.ask_each("open_rows", ({"call_ids": part, "brief": brief} for part in parts))


LISTED = ("ID", "STATE", "AGE", "RISK", "SESSION", "COMMAND", "DESCRIPTION")


def _wait_for_a_call(options: Options) -> None:
    """Return once a call waits for a human. Raises `WhisperError`, and `BrokenPipeError` if nobody reads any more."""
    import select

    with supervisor_of(options) as supervisor, supervisor_of(options) as watcher:
        watcher.send({"id": 0, "op": "watch", "args": {}})
        reader = select.poll()
        reader.register(watcher.fileno(), select.POLLIN)
        reader.register(sys.stdout.fileno(), 0)
        while not supervisor.ask("status")["waiting"]:
            # What a pipe's reader does shows in no event of the supervisor, so both are waited for.
            if not watcher.has_line and sys.stdout.fileno() in dict(reader.poll()):
                raise BrokenPipeError
            watcher.receive()


def _ps(options: Options) -> int:
    return _show(options, ("ID", "PID", "STATE", "AGE", "RISK", "SESSION", "COMMAND"), _processes, kind="ps")


def _history(options: Options) -> int:
    if options.action == "verify":
        from whisper_tui.cli.recorded_output import verify

        return verify(home_of(options), options.head, as_json=options.json)
    if options.head is not None:
        raise InvalidRequest("--head belongs to history verify", hint="whisper-tui history verify --head END")
    if options.limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {options.limit}")
    if options.action is not None:
        from whisper_tui.cli.recorded_output import notices

        return notices(home_of(options), options.action, options.limit, as_json=options.json)
    chosen = {"limit": options.limit, "session": options.session, "text": options.text}
    return _show(options, PAST, _past, kind="history", **chosen)


PAST = ("ID", "OUTCOME", "AGE", "RISK", "SESSION", "COMMAND", "DESCRIPTION")


def is_past(row: Row) -> bool:
    """True if a row, which another machine has sent, can be printed as a past call."""
    try:
        (line,) = _past([row])
        return all(isinstance(text, str) for text in line)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False


def print_history(options: Options, rows: list[Row]) -> int:
    """Print past calls of several machines; the table has the name of its machine before each id."""
    shown = rows if options.json else [row | {"id": visible(f"{row['host']}:{row['id']}")} for row in rows]
    return _print(options, PAST, _past, shown)


def _show(options: Options, headings: tuple[str, ...], lines: Callable[[list[Row]], Lines], **query: Any) -> int:
    with reader_of(options) as supervisor:
        rows = supervisor.ask("rows", **query) if supervisor is not None else []
    return _print(options, headings, lines, rows)


def _print(options: Options, headings: tuple[str, ...], lines: Callable[[list[Row]], Lines], rows: list[Row]) -> int:
    if options.json:
        print_json(rows)
    else:
        print_table(headings, lines(rows))
    return 0


def _listed(rows: list[Row]) -> Lines:
    for row in rows:
        yield row["id"], state(row), _age(row), gravest(row), *_words(row)


def _processes(rows: list[Row]) -> Lines:
    for row in rows:
        if row["state"] != "ended":
            pid = str(row["pid"] or "")
            yield row["id"], pid, state(row), _age(row), gravest(row), visible(row["session"]), _command(row)
        for process in row["background"]:
            if process["alive"]:
                ended, session = age(time.time() - row["since"]), visible(row["session"])
                command = visible(process["command"])
                yield row["id"], str(process["pid"]), "background", ended, gravest(row), session, command


def _past(rows: list[Row]) -> Lines:
    for row in rows:
        yield row["id"], outcome(row), _age(row), gravest(row), *_words(row)


def _words(row: Row) -> tuple[str, str, str]:
    return visible(row["session"]), _command(row), visible(row["description"])


def _age(row: Row) -> str:
    return age(time.time() - since(row))


def _command(row: Row) -> str:
    place = f"@{row['place']} " if row.get("place") else ""
    return place + words_of(row) + (" (edited)" if row["asked"] else "")


def words_of(row: Row) -> str:
    """The command, or the edit or tool as in the cockpit's list."""
    function = row.get("function")
    if not row.get("edits") and not function:
        return command_line(row["command"])
    # Only for calls of other tools: it takes as long to load as all else that a list needs.
    from whisper_tui.present.tool_text import ChangedFile, edit_line, tool_line

    if edits := row.get("edits"):
        named = (
            ChangedFile(
                each["action"], each["path"], each.get("moved_from", ""), each.get("added"), each.get("removed")
            )
            for each in edits
        )
        return "".join(span.text for span in edit_line(list(named), row["cwd"]))
    return "".join(span.text for span in tool_line(**function)) if function else command_line(row["command"])


def add_show(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    from whisper_tui.model.secrets import MASK

    parser = verbs.add(
        "show",
        "show one call in full",
        _show_one,
        details="A call that waits for a decision is shown whole. In every other, secrets are replaced by "
        f"{MASK}; the journal keeps what ran.",
        examples=(
            "show 7",
            "show 7 --told",
        ),
    )
    parser.add_argument("id", metavar="ID", help="number of the call")
    parser.add_argument("--unmasked", action="store_true", help="show the secrets in the command, too")
    parser.add_argument("--told", action="store_true", help="show instead what its agent was told about it")
    parser.add_argument("--json", action="store_true", help="print one object")


def _show_one(options: Options) -> int:
    if options.told:
        return _show_answer(options)
    with reader_of(options) as supervisor:
        if supervisor is None:
            raise UnknownCall(f"there is no call {options.id}", hint="No call has been recorded here")
        (row,) = supervisor.ask("rows", kind="show", call_id=options.id, unmasked=options.unmasked)
        row["effects"] = _effects(supervisor, row, unmasked=options.unmasked)
    if options.json:
        print_json(row)
        return 0
    coloured = shows_colours()
    for name, value in _facts(row):
        shown = visible(value, keep_lines=True)
        label = f"{name:<12}"
        if coloured:
            label, shown = styled(label, "2"), styled(shown, risk_style(shown)) if name == "risk" else shown
        if name == "diff":
            path, _, lines = shown.partition("\n")
            shown = f"{path}\n{styled_diff(lines)}"
        shown = shown.replace("\n", "\n" + " " * 14)
        sys.stdout.write(f"{label}  {shown}\n")
    return 0


def _show_answer(options: Options) -> int:
    import asyncio

    with reader_of(options) as supervisor:
        if supervisor is None:
            raise UnknownCall(f"there is no call {options.id}", hint="No call has been recorded here")
    told = asyncio.run(_told(home_of(options), options.id))
    if not options.unmasked:
        told = told.masked()
    if options.json:
        print_json(told.as_json())
        return 0
    for caveat in told.caveats:
        sys.stdout.write(f"note: {visible(caveat)}\n")
    for label, text in told.parts:
        sys.stdout.write(f"{label}:\n")
        sys.stdout.writelines(f"  {visible(line)}\n" for line in text.removesuffix("\n").split("\n"))
    return 0


async def _told(home: "Directories", call_id: str) -> "AgentAnswer":
    from whisper_tui.config import load
    from whisper_tui.supervisor.runs.output_files import LocalOutput
    from whisper_tui.wire.client import SupervisorClient

    supervision = await SupervisorClient.connect(home, local_output=LocalOutput(home.state))
    try:
        return await answers_again(load(home).tools)(supervision, await supervision.record(call_id))
    finally:
        await supervision.close()


def answers_again(settings: "ToolSettings") -> "AnswerReader":
    """Return the function that makes the answer to an ended call again, with the tools of these settings."""

    def registry(context: "ToolContext") -> "ToolRegistry":
        from whisper_tui.tools import standard_registry

        return standard_registry(context, **settings.offered)

    async def again(supervision: "Supervision", record: "CallRecord") -> "AgentAnswer":
        import asyncio
        import importlib

        # In a thread: importing the tools takes so long that the cockpit would drop keys.
        module = await asyncio.to_thread(importlib.import_module, "whisper_tui.transports.answers_again")
        found: AgentAnswer = await module.AnswersAgain(registry)(supervision, record)
        return found

    return again


def _effects(supervisor: LightClient, row: Row, *, unmasked: bool) -> Row | None:
    """The effects of a call that has not started; they quote the command, so they are shown where it is shown whole."""
    if row["state"] not in {"unjudged", "waiting", "set aside", *(("held", "queued") if unmasked else ())}:
        return None
    try:
        found: Row = supervisor.ask("effects", call_id=row["id"])
    except WhisperError:
        return None  # it has started meanwhile
    return found


def _facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "call", f"{row['id']}, {standing(row, time.time() - since(row))}"
    if row["reason"]:
        yield "because", row["reason"]
    yield "tool", row["tool"]
    yield "session", f"{row['session']} ({row['session_id']})"
    if row["client"]:
        yield "agent", " ".join(filter(None, (row["client"], row["model"], row["asker"] and f"({row['asker']})")))
    if row.get("blocked"):
        yield "blocked", row["blocked"]["words"]
    if row["alarm"] is not None:
        yield "ALARM", row["alarm"]["words"]
        yield "approved", row["alarm"]["approved"]
        if row["alarm"]["ran"]:
            yield "what ran", row["alarm"]["ran"]
    if row["agent_gave_up"] and not (row.get("set_aside") or {}).get("agent_went_on"):
        yield "agent gone", f"it no longer waits: {row['agent_gave_up']}"
    if row["description"]:
        yield "description", row["description"]
    named = bool(row.get("edits") or row.get("function"))
    yield "command", words_of(row) if named else _command_in_full(row["command"])
    if named and row.get("function"):
        yield "arguments", json.dumps(row["spec"]["command"]["arguments"], ensure_ascii=False, indent=2)
    for file in row.get("edits", ()):
        yield "file", _file_in_words(file)
    if row.get("place"):
        yield "place", row["place"]
    yield "directory", row["cwd"]
    if row["asked"]:
        yield "asked for", _command_in_full(row["asked"]["command"])
        yield "in", row["asked"]["cwd"]
        if row["asked"].get("place", row.get("place")) != row.get("place"):
            yield "at", row["asked"]["place"] or "this machine"
    yield from _conditions(row["spec"])
    yield from _limits(row["limits"], row["summed"])
    yield from _judgement(row)
    yield from _changes(row)
    yield from _stated(row["effects"])
    yield from _run(row)


def _command_in_full(command: list[str] | str) -> str:
    """A shell's text keeps its lines."""
    return command if isinstance(command, str) else command_line(command)


def _file_in_words(file: Row) -> str:
    """A file of an edit: its real path, and all that is unusual about it."""
    # Only for calls of other tools, as in `words_of`.
    from whisper_tui.present.tool_text import unusual_facts

    words = [f"{file['action']} {file.get('real') or file['path']}"]
    if file.get("moved_from"):
        words.append(f"which was {file['moved_from']}")
    if "added" in file:
        words.append(f"+{file['added']:,} -{file['removed']:,} lines")
    return ", ".join((*words, *unusual_facts(file)))


def _limits(limits: dict[str, int], summed: list[str]) -> Iterator[tuple[str, str]]:
    """Processes are always counted for all of the run; the others so only where the kernel counts for the whole."""
    words = {"cpu_s": "{:,} s of processor time", "memory_bytes": "{:,} bytes of memory", "processes": "{:,} processes"}
    told = []
    for name, limit in limits.items():
        whose = "" if name == "processes" else " for all of it" if name in summed else " for each process"
        told.append(words[name].format(limit) + whose)
    if told:
        yield "limits", ", ".join(told)


def _conditions(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(spec["environment"].items()):
        yield "variable", f"{name}={value}"
    if spec["timeout_s"] is not None:
        yield "time limit", f"{spec['timeout_s']:g} s"
    if spec["tty"]:
        yield "terminal", "yes"


_JUDGED = {"allow": "allowed", "ask": "asked", "refuse": "refused"}
"""The verdicts of the policy, as what became of the call."""


def _judgement(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if row["resolved"] and row["resolved"]["program"]:
        yield "program", row["resolved"]["program"]
        yield from _own_shell(row["resolved"].get("own_shell") or {})
    if row["verdict"]:
        yield _JUDGED[row["verdict"]["kind"]], row["verdict"]["reason"]
        for risk in row["risks"]:
            yield "risk", f"{risk_sign(risk['id'], grave=risk['grave'])} {risk['sentence']}"
        for code in row["not_inspected"]:
            yield "risk", f"not read: {code['name']}, {code['why']}"
        for prefix in row["verdict"]["prefixes"]:
            yield "remember as", f"{command_line(prefix)} …"
        for target in row["verdict"].get("targets", ()):
            yield "remember as", target
    if aside := row.get("set_aside"):  # An older supervisor does not say.
        agent = "was told so and goes on" if aside["agent_went_on"] else "has not been told so"
        yield "set aside", f"by {aside['by']['who']} ({aside['by']['surface']}); its agent {agent}"
    if row["returned_because"]:
        yield "asked again", row["returned_because"]
    if row["decision"]:
        by = row["decided_by"] or {"surface": "", "who": ""}
        yield "decided", f"{row['decision']} by {by['who']} ({by['surface']})"
    if row["sandbox"]:
        also = ", ".join(row["sandbox"]["execute"])
        yield "sandbox", row["sandbox"]["words"] + (f"; it may also run programs in {also}" if also else "")


def _own_shell(own: Row) -> Iterator[tuple[str, str]]:
    """The agent's own shell, in which the call runs once a human has approved it."""
    if own.get("program"):
        yield "shell", f"{own['program']}, if you approve it"
    if own.get("profile"):
        yield "profile", f"{own['profile']}, if you approve it"
    for word, definition in own.get("defines", {}).items():
        yield "defined there", f"{word}: {definition}"


def _changes(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is known of the preview of a call, and what was done with its changes since."""
    discarded = row.get("discarded")  # An older supervisor does not say.
    if not (discarded or row["preview"] or row["undos"] or row["not_undoable_because"] or row["undoable"]):
        return
    # The words need the model, which takes long to load, and most calls have none of this.
    from whisper_tui.model.preview import ChangedFiles, PreviewReport, Undo
    from whisper_tui.present.preview_text import changed_text, outcome_text, undo_text

    if preview := row["preview"]:
        report = preview["report"]
        counted = not (row["applied"] and row.get("changed"))
        found = outcome_text(PreviewReport.model_validate(report), counted=counted) if report else preview["state"]
        edited = f" of {_command_in_full(preview['edited'])}" if preview["edited"] else ""
        yield "preview", f"{preview['state']}{edited}, by {preview['by']['who']}: {found}"
    words = ["applied from the preview; it did not run again"] if row["applied"] else []
    if changed := row.get("changed"):
        words.insert(0, changed_text(ChangedFiles.model_validate(changed), row["spec"]["cwd"]))
    if words:
        yield "changes", "; ".join(words)
    if discarded:
        yield "changes", f"did not become real: {discarded}"
    if row["state"] == "ended" and row["undoable"] and not row["taken_back"]:
        yield "undo", f"its changes were kept; whisper-tui undo {row['id']} undoes them"
    if row["not_undoable_because"]:
        word = "not kept" if row["state"] == "ended" else "cannot be undone"
        yield "changes", f"{word}: {row['not_undoable_because']}"
    for undo in row["undos"]:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(undo["at"]))
        yield "changes", undo_text(Undo.model_validate(undo), at)


def _stated(effects: Row | None) -> Iterator[tuple[str, str]]:
    if effects is None:
        return
    from whisper_tui.present.effects_text import effect_lines, no_effects_text

    for line in effect_lines(effects):
        yield "effect", line.text
    if nothing := no_effects_text(effects):
        yield "effect", nothing
    for file in effects["files"]:
        if file["diff"] is not None and file["diff"]["text"]:
            cut = "\n… the diff goes on" if file["diff"]["cut"] else ""
            yield "diff", f"{file['path']}\n{file['diff']['text'].rstrip()}{cut}"
    for lost in (lost for git in effects["git"] for lost in git.get("loses", ())):
        cut = "\n… the diff goes on" if lost["diff"]["cut"] else ""
        yield "diff", f"{lost['path']}, lost\n{lost['diff']['text'].rstrip()}{cut}"
    for code in effects["code"]:
        if since := code.get("since"):
            cut = "\n… the diff goes on" if since["cut"] else ""
            yield "diff", f"{code['path']}, since call {code['approved_in']}\n{since['text'].rstrip()}{cut}"


def _run(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if row["pid"] is not None:
        yield "process", f"pid {row['pid']}, group {row['pgid']}, keeper {row['keeper_pid']}"
    if row["control_group"] is not None:
        yield "cgroup", row["control_group"]
    for process in row["background"]:
        yield "left behind", f"pid {process['pid']}{'' if process['alive'] else ' (ended)'}: {process['command']}"
    if row["output"]:
        gone = ", removed from the disk" if row["output_removed"] else ""
        yield "output", f"{row['output']['out']:,} bytes, and {row['output']['err']:,} of errors{gone}"
