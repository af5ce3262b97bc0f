"""`approve` and `deny`: a human's decision about a waiting call."""

import os
import pwd
import shlex
import sys
from typing import Any

from whisper_tui.cli.asking import asking
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.cli.scopes import add_scope, covered, meant, scope_of
from whisper_tui.cli.words import masked_line
from whisper_tui.model.errors import AlreadyDecided, InvalidRequest
from whisper_tui.model.text import visible
from whisper_tui.wire.asking import Asking


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    approve = verbs.add(
        "approve",
        "let waiting calls run; one alone can be changed",
        _approve,
        details="It prints what was approved. The agent is told when the command was changed.",
    )
    approve.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    add_scope(approve)
    approve.add_argument(
        "--command", metavar="TEXT", help="run this instead: the shell's text, or a program and its arguments"
    )
    approve.add_argument("--cwd", metavar="DIR", help="run it in this directory instead")
    confined = approve.add_argument_group("in a sandbox (without one of these: with all your rights)")
    kinds = confined.add_mutually_exclusive_group()
    kinds.add_argument("--read-only", action="store_true", help="it writes nothing but its own temporary directory")
    kinds.add_argument("--confined", action="store_true", help="it writes nothing outside of the workspace")
    confined.add_argument("--network", action="store_true", help="it may reach other machines all the same")
    _add_seen(approve)
    deny = verbs.add("deny", "refuse waiting calls; the agent is given the reason word for word", _deny)
    deny.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    deny.add_argument("--reason", default="", metavar="TEXT", help="what the agent is told, which helps it most")
    deny.add_argument("--stop-session", action="store_true", help="deny all else that its session waits for, too")
    _add_seen(deny)


def _add_seen(parser: Any) -> None:
    parser.add_argument(
        "--seen", metavar="DIGEST", help="refuse if the call is not as it was when show --json gave this `seen`"
    )


def _approve(options: Options) -> int:
    scope = scope_of(options)
    with asking(options) as supervisor:
        sandbox = _sandbox(options)
        for row in _all_waiting(supervisor, options):
            edited = _edited(row, options)
            if scope is not None:
                sys.stdout.write("\n".join(covered(supervisor, row["id"], scope, edited)) + "\n")
            if not options.dry_run:
                decision = {"kind": "approve", "edited": edited, "remember": scope, "sandbox": sandbox}
                _decide(supervisor, row, decision, options.seen)
                say_approved(row, edited, scope, sandbox)
    return 0


def say_approved(
    row: dict[str, Any], edited: dict[str, Any] | None, scope: Any, sandbox: dict[str, Any] | None
) -> None:
    """Tell the one who approved a call what follows from it."""
    spec = edited or row["spec"]
    changed = ", changed" if edited else ""
    remembered = "" if scope is None else f"\n{meant(scope)}"
    shown = _shown(spec["command"]) if edited else masked_line(row["command"])
    place = visible(spec["cwd"])
    if sandbox is not None:
        place += f", in a sandbox ({sandbox['kind']}, {'with network' if sandbox['network'] else 'no network'})"
    runs = f"It runs in {place}"
    if row["agent_gave_up"] and row.get("needs_agent"):
        why = visible(row["agent_gave_up"])
        runs = f"Its agent no longer waits for it ({why}). If it asks again for the same, that runs in {place}"
    elif row["agent_gave_up"]:
        runs += f", and its agent no longer waits for it ({visible(row['agent_gave_up'])})"
    sys.stdout.write(f"Approved {row['id']}{changed}: {shown}\n{runs}{remembered}\n")


def _sandbox(options: Options) -> dict[str, Any] | None:
    """The sandbox that was chosen, as JSON. None: none. Raises `InvalidRequest`."""
    if not (options.read_only or options.confined):
        if options.network:
            hint = "Use it with --read-only or --confined; without them nothing is closed"
            raise InvalidRequest("--network is about a sandbox", hint=hint)
        return None
    return {"kind": "workspace" if options.confined else "read-only", "network": options.network}


def _deny(options: Options) -> int:
    with asking(options) as supervisor:
        for row in _all_waiting(supervisor, options):
            decision = {"kind": "deny", "reason": options.reason, "stop_session": options.stop_session}
            _decide(supervisor, row, decision, options.seen)
            sys.stdout.write(f"Denied {row['id']}: {masked_line(row['command'])}\n")
    return 0


def decider() -> dict[str, str]:
    """Who decides, through the command line."""
    try:
        who = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        who = f"uid {os.getuid()}"
    return {"surface": "command line", "who": who}


def _all_waiting(supervisor: Asking, options: Options) -> list[dict[str, Any]]:
    """The calls that are named, each once. Nothing is decided unless all of them wait."""
    ids = list(dict.fromkeys(options.ids))
    about_one = [
        f"--{name.replace('_', '-')}"
        for name in ("command", "cwd", "seen", "stop_session")
        if getattr(options, name, None) not in (None, False)
    ]
    if len(ids) > 1 and about_one:
        raise InvalidRequest(f"{about_one[0]} is about one call, and {len(ids)} are named", hint="Decide one by one")
    return [_waiting(supervisor, call_id) for call_id in ids]


def _waiting(supervisor: Asking, call_id: str) -> dict[str, Any]:
    row: dict[str, Any] = supervisor.ask("rows", kind="show", call_id=call_id)[0]
    if row["state"] != "waiting":
        raise AlreadyDecided(
            f"call {call_id} does not wait for a decision: it is {row['state']}",
            hint=f"whisper-tui show {call_id} says how it stands",
        )
    return row


def _decide(supervisor: Asking, row: dict[str, Any], decision: dict[str, Any], seen: str | None) -> None:
    supervisor.ask("decide", call_id=row["id"], decision=decision, by=decider(), seen=seen or row["seen"])


def _edited(row: dict[str, Any], options: Options) -> dict[str, Any] | None:
    """The specification to run instead. None: as asked."""
    if options.command is None and options.cwd is None:
        return None
    spec = dict(row["spec"])
    if options.cwd is not None:
        from pathlib import Path

        spec["cwd"] = str(Path(options.cwd).absolute())
    if options.command is not None:
        spec["command"] = {**spec["command"], **_replacement(spec["command"]["kind"], options.command)}
    return spec


def _shown(command: dict[str, Any]) -> str:
    return masked_line(command["text"] if command["kind"] == "shell" else [command["program"], *command["args"]])


def _replacement(kind: str, text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidRequest("--command was given an empty text", hint="To refuse the call, use whisper-tui deny")
    if kind == "shell":
        return {"text": text}
    if kind != "argv":
        raise InvalidRequest(
            "this call runs no command, so there is none to replace", hint="Approve it as it is, or deny it"
        )
    try:
        program, *args = shlex.split(text)
    except ValueError as error:
        raise InvalidRequest(f"--command cannot be split into words: {error}", hint="Check its quotes") from error
    return {"program": program, "args": args}
