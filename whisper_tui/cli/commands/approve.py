"""`approve`, `deny`, `approvals` and `revoke`: decisions of a human, and the approvals that are remembered."""

import argparse
import os
import pwd
import shlex
import sys
import time
from collections import Counter
from typing import Any

from whisper_tui.cli.output_format import (
    command_line,
    cut,
    masked_line,
    print_denials,
    print_json,
    print_table,
)
from whisper_tui.cli.sign_decision import signed, signing_key
from whisper_tui.cli.subcommand import Options, Subcommands, check_minutes, minutes, reader_of, supervisor_of
from whisper_tui.model.errors import AlreadyDecided, InvalidRequest, Refused
from whisper_tui.model.text import visible
from whisper_tui.present.column_words import risk_sign
from whisper_tui.present.quantities import age
from whisper_tui.present.scope_words import approved_scope, scope_targets
from whisper_tui.wire.light_client import LightClient

DENIED = 120
"""Columns of a denied command that are printed, to know it again."""

SHOWN = 10
"""Different commands that are shown of those that an approval would have let through."""

_SAME_FILES = "The approval ends if a script of the workspace that the command runs is changed."

Scope = str | dict[str, Any] | None
"""As JSON. None: this call alone."""


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a scope."""
    scope = parser.add_argument_group("scope of the approval (default: this call only)")
    scope.add_argument(
        "--session",
        action="store_true",
        help="this exact command in this directory, for the session; scripts of the workspace must stay the same",
    )
    scope.add_argument(
        "--prefix", nargs="+", metavar="WORD", help="commands of the session that begin so; show offers some"
    )
    scope.add_argument("--within", metavar="DIR", help="with --prefix: only in this directory and below")
    scope.add_argument(
        "--path", metavar="PATTERN", help="every edit of these files, as in .gitignore; show offers some"
    )
    scope.add_argument("--host", nargs="+", metavar="HOST", help="every fetch from these hosts, or *.example.org")
    scope.add_argument(
        "--of-tool", metavar="NAME", help="every call of this tool, or mcp__SERVER__* for all of a server"
    )
    scope.add_argument(
        "--save",
        choices=("project", "user"),
        help="save the prefix, files, hosts or tool as a rule, for this workspace or everywhere",
    )
    scope.add_argument(
        "--for", dest="minutes", type=minutes, metavar="TIME", help="only for so long: 30 (minutes), 90m, 2h, 1d"
    )
    scope.add_argument("--times", type=int, metavar="N", help="only for so many more calls")
    scope.add_argument(
        "--dry-run", action="store_true", help="only show which earlier calls the approval would have allowed"
    )


def scope_of(options: Options) -> Scope:
    """Return the scope that the options choose. Raises `InvalidRequest` for what does not go together."""
    _check(options)
    if target := _target(options):
        limits = {"uses": options.times, "minutes": options.minutes}
        return {"kind": "tool", **target, "where": options.save or "session", **limits}
    if options.prefix is None:
        limits = {"uses": options.times, "minutes": options.minutes}
        if any(limit is not None for limit in limits.values()):
            return {"kind": "exact", **limits}
        return "exact_for_session" if options.session else None
    words = _words(options.prefix)
    if options.save is not None:
        return {"kind": "rule", "words": words, "where": options.save, "minutes": options.minutes}
    return {
        "kind": "prefix",
        "words": words,
        "directory": options.within,
        "uses": options.times,
        "minutes": options.minutes,
    }


def _check(options: Options) -> None:
    if options.times is not None and options.times < 1:
        raise InvalidRequest(f"--times must be at least 1, not {options.times}")
    check_minutes(options.minutes)
    named = {"--prefix": options.prefix, "--path": options.path, "--host": options.host, "--of-tool": options.of_tool}
    given = [name for name, value in named.items() if value]
    if len(given) > 1:
        raise InvalidRequest(f"{' and '.join(given)} exclude each other", hint="Leave all but one of them out")
    if options.save is not None and not given:
        raise InvalidRequest(
            "a rule needs the first words of its commands, or its files, hosts or tool",
            hint=f"Name them with --prefix, --path, --host or --of-tool; whisper-tui show {options.ids[0]} offers some",
        )
    if options.save is not None and options.times is not None:
        raise InvalidRequest(
            "a saved rule cannot be limited to a number of calls", hint="Use --for, or leave out --save"
        )
    if options.within is not None and (options.prefix is None or options.save is not None):
        raise InvalidRequest(
            "--within is about a prefix for the session", hint="Use it with --prefix and without --save"
        )
    if options.session and options.save is not None:
        raise InvalidRequest("--session and --save exclude each other", hint="Leave one of them out")
    if options.dry_run and not (options.session or given or options.minutes or options.times):
        raise InvalidRequest("--dry-run tests a standing approval", hint="Use it with --session or --prefix")


def _target(options: Options) -> dict[str, Any]:
    """Return the files, hosts or tool that an approval is about, as fields of its scope. Empty: none are named."""
    named = {"path": options.path, "hosts": options.host, "tool": options.of_tool}
    return {key: value for key, value in named.items() if value}


def _words(given: list[str]) -> list[str]:
    """The words of a prefix; one argument with blanks in it is split like a line for a shell."""
    if len(given) > 1 or not any(blank in given[0] for blank in " \t"):
        return given
    try:
        return shlex.split(given[0])
    except ValueError as error:
        raise InvalidRequest(f"--prefix cannot be split into words: {error}", hint="Check its quotes") from error


def covered(supervisor: LightClient, call_id: str, scope: Scope, edited: dict[str, Any] | None) -> list[str]:
    """Return lines about earlier calls that the approval would have let through. Raises `Refused`."""
    found = supervisor.ask("would_cover", call_id=call_id, scope=scope, edited=edited)
    ids = set(found["calls"])
    lines = [f"The approval would have covered {len(ids)} of the last {found['looked_at']} calls{':' if ids else ''}"]
    rows = supervisor.ask("rows", kind="history", limit=max(1, found["looked_at"])) if ids else []
    counted = Counter(masked_line(row["command"]) for row in rows if row["id"] in ids)
    lines += [f"  {times:>4} x  {command}" for command, times in counted.most_common(SHOWN)]
    if len(counted) > SHOWN:
        lines.append(f"  and {len(counted) - SHOWN} other commands")
    return lines


def meant(scope: dict[str, Any] | str) -> str:
    """Return the standing approval as one sentence."""
    text = approved_scope(scope)
    exact = isinstance(scope, str) or scope["kind"] == "exact"
    return f"{text[0].upper()}{text[1:]}.{f' {_SAME_FILES}' if exact else ''}"


def add_decisions(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    approve = verbs.add(
        "approve",
        "approve waiting calls; a single one can be edited",
        _approve,
        details="It prints what was approved. The agent is told when the command was changed. For a severe risk "
        "(two triangles in list) it asks on a terminal; elsewhere it refuses without --yes.",
        examples=(
            "approve 7",
            "approve 7 --command 'make test'",
            "approve 7 --prefix npm test --for 2h",
            "approve 7 --as-previewed",
        ),
    )
    approve.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    add_scope(approve)
    _add_changes(approve)
    confined = approve.add_argument_group("sandbox (default: none, the command has all your rights)")
    kinds = confined.add_mutually_exclusive_group()
    kinds.add_argument("--read-only", action="store_true", help="it can write only to a temporary directory of its own")
    kinds.add_argument("--confined", action="store_true", help="it can write only in the workspace")
    confined.add_argument("--network", action="store_true", help="it can also reach other machines")
    kept = approve.add_argument_group("effects").add_mutually_exclusive_group()
    kept.add_argument(
        "--as-previewed", action="store_true", help="apply the changes of its preview, without running it again"
    )
    kept.add_argument("--undoable", action="store_true", help="its changes become real when it ends, and can be undone")
    kept.add_argument("--not-undoable", action="store_true", help="nothing of what it changes is kept")
    approve.add_argument("--yes", action="store_true", help="approve severe risks without asking")
    _add_seen(approve)
    deny = verbs.add(
        "deny",
        "deny waiting calls; the agent gets the reason word for word",
        _deny,
        details="A last word that is no number is the reason: whisper-tui deny 7 'use the staging server'.",
        examples=(
            "deny 7 'use the staging server'",
            "deny 7 8 --stop-session",
        ),
    )
    deny.add_argument("ids", nargs="+", metavar="ID", help="number of a call; the last word may be the reason")
    deny.add_argument("--reason", metavar="TEXT", help="the reason, which the agent is told")
    deny.add_argument("--stop-session", action="store_true", help="also deny all other waiting calls of its session")
    _add_seen(deny)


def _add_changes(approve: Any) -> None:
    approve.add_argument(
        "--command",
        metavar="TEXT",
        help="run this instead: text for the shell, a program and its arguments, or the arguments of a tool as JSON",
    )
    approve.add_argument("--cwd", metavar="DIR", help="run it in this directory instead")
    approve.add_argument("--place", metavar="NAME", help="run it at this place instead, or `here`")


def _add_seen(parser: Any) -> None:
    parser.add_argument(
        "--seen", metavar="DIGEST", help="refuse if the call has changed since show --json printed this `seen`"
    )


def _approve(options: Options) -> int:
    scope = scope_of(options)
    with supervisor_of(options) as supervisor:
        sandbox = _sandbox(options)
        rows = all_waiting(supervisor, options)
        if not options.dry_run:
            _confirm_severe(rows, options)
        for row in rows:
            edited = edited_spec(row, options)
            if scope is not None:
                sys.stdout.write("\n".join(covered(supervisor, row["id"], scope, edited)) + "\n")
            if not options.dry_run:
                decision = {"kind": "approve", "edited": edited, "remember": scope, "sandbox": sandbox}
                decision |= _effects(supervisor, row["id"], options)
                _decide(supervisor, row, decision, options)
                if options.as_previewed:
                    decided = supervisor.ask("rows", kind="show", call_id=row["id"])[0]
                    edited = decided["spec"] if decided["asked"] else None
                say_approved(row, edited, scope, sandbox, applies=options.as_previewed)
    return 0


def _confirm_severe(rows: list[dict[str, Any]], options: Options) -> None:
    """Ask about severe risks on a terminal. Raises `Refused` unless they are confirmed; then nothing is decided."""
    severe = [(row, risk) for row in rows for risk in row.get("risks", ()) if risk["grave"]]
    if not severe or options.yes:
        return
    ids = list(dict.fromkeys(row["id"] for row, _ in severe))
    calls = f"call {ids[0]}" if len(ids) == 1 else f"calls {', '.join(ids)}"
    # A number is quickly mistyped, and unlike in the cockpit nobody has seen the command under the cursor.
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        found = "; ".join(dict.fromkeys(risk["sentence"] for _, risk in severe))
        raise Refused(
            f"nothing was approved, because of severe risks of {calls}: {visible(found)}",
            hint="Use --yes to approve them anyway",
        )
    for row in rows:
        for risk in (risk for each, risk in severe if each is row):
            sys.stdout.write(f"{risk_sign(risk['id'], grave=risk['grave'])} {visible(risk['sentence'])}\n")
        if row["id"] in ids:
            sys.stdout.write(f"   {row['id']}: {_in_lines(row['command'])}\n")
    sys.stdout.write(f"Approve {calls} anyway? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was approved", hint=f"whisper-tui show {ids[0]} shows the call in full")


def say_approved(
    row: dict[str, Any],
    edited: dict[str, Any] | None,
    scope: Scope,
    sandbox: dict[str, Any] | None,
    *,
    applies: bool = False,
) -> None:
    """Print what was approved, where it runs, and what is remembered."""
    spec = edited or row["spec"]
    changed = ", changed" if edited else ""
    remembered = "" if scope is None else f"\n{meant(scope)}"
    shown = _shown(spec["command"]) if edited else _in_lines(row["command"])
    place = visible(spec["cwd"]) + (f", at {spec['place']}" if spec.get("place") else "")
    if sandbox is not None:
        place += f", in a sandbox ({sandbox['kind']}, {'with network' if sandbox['network'] else 'no network'})"
    runs = f"Its previewed changes are applied in {place}; it does not run again" if applies else f"It runs in {place}"
    if row["agent_gave_up"] and row.get("needs_agent"):
        why = visible(row["agent_gave_up"])
        runs = f"Its agent no longer waits for it ({why}). If it asks again for the same, that runs in {place}"
    elif row["agent_gave_up"]:
        runs += f", and its agent no longer waits for it ({visible(row['agent_gave_up'])})"
    sys.stdout.write(f"Approved {row['id']}{changed}:{'' if shown[0] == chr(10) else ' '}{shown}\n{runs}{remembered}\n")


def _in_lines(command: list[str] | str) -> str:
    """Return the command without its secrets; the lines of a script stay lines, below each other."""
    if not isinstance(command, str) or "\n" not in command:
        return masked_line(command)
    from whisper_tui.model.secrets import masked

    return "".join(f"\n  {visible(line)}" for line in masked(command).split("\n"))


def _sandbox(options: Options) -> dict[str, Any] | None:
    """The sandbox that was chosen, as JSON. None: none. Raises `InvalidRequest`."""
    if not (options.read_only or options.confined):
        if options.network:
            hint = "Use it with --read-only or --confined; without a sandbox nothing is closed"
            raise InvalidRequest("--network is about a sandbox", hint=hint)
        return None
    return {"kind": "workspace" if options.confined else "read-only", "network": options.network}


def _effects(supervisor: LightClient, call_id: str, options: Options) -> dict[str, Any]:
    """Return the fields of a decision about the effects of a call. Raises `Refused` without a preview to apply."""
    if not options.as_previewed:
        return {"undoable": options.undoable} if options.undoable or options.not_undoable else {}
    preview = supervisor.ask("record", call_id=call_id)["preview"]
    if preview is None or preview["dropped"] or preview["report"] is None:
        raise Refused(f"call {call_id} has no preview", hint=f"whisper-tui preview {call_id} makes and shows one")
    return {"preview": preview["report"]["digest"]}


def _deny(options: Options) -> int:
    if options.reason is None:
        *ids, last = options.ids
        # Ids are numbers, so that a forgotten --reason costs nothing.
        options.ids, options.reason = (ids, last) if ids and not last.isdecimal() else (options.ids, "")
    with supervisor_of(options) as supervisor:
        for row in all_waiting(supervisor, options):
            decision = {"kind": "deny", "reason": options.reason, "stop_session": options.stop_session}
            _decide(supervisor, row, decision, options)
            sys.stdout.write(f"Denied {row['id']}: {cut(masked_line(row['command']), DENIED)}\n")
    return 0


def decider() -> dict[str, str]:
    """Return the decider of this command line."""
    try:
        who = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        who = f"uid {os.getuid()}"
    return {"surface": "command line", "who": who}


def all_waiting(supervisor: LightClient, options: Options) -> list[dict[str, Any]]:
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


def _waiting(supervisor: LightClient, call_id: str) -> dict[str, Any]:
    row: dict[str, Any] = supervisor.ask("rows", kind="show", call_id=call_id)[0]
    if row["state"] not in {"waiting", "set aside"}:
        raise AlreadyDecided(
            f"call {call_id} does not wait for a decision: it is {row['state']}",
            hint=f"whisper-tui show {call_id} shows its state",
        )
    return row


def _decide(supervisor: LightClient, row: dict[str, Any], decision: dict[str, Any], options: Options) -> None:
    call_id, by, seen = row["id"], decider(), options.seen or row["seen"]
    key = signing_key(options)
    proof = {"proof": signed(key, supervisor, call_id=call_id, decision=decision, by=by, seen=seen)} if key else {}
    supervisor.ask("decide", call_id=call_id, decision=decision, by=by, seen=seen, **proof)


def edited_spec(row: dict[str, Any], options: Options) -> dict[str, Any] | None:
    """The specification to run instead. None: as asked."""
    place: str | None = getattr(options, "place", None)
    if options.command is None and options.cwd is None and place is None:
        return None
    spec = dict(row["spec"]) | ({} if place is None else {"place": place})
    if options.cwd is not None:
        from pathlib import Path

        directory = Path(options.cwd).absolute()
        if not spec.get("place") and not os.path.isdir(directory):  # noqa: PTH112  not even a refusal to look is an error
            raise InvalidRequest(
                f"there is no directory {directory}", hint="Nothing was approved. Name one that exists"
            )
        spec["cwd"] = str(directory)
    if options.command is not None:
        spec["command"] = {**spec["command"], **_replacement(spec["command"]["kind"], options.command)}
    return spec


def _shown(command: dict[str, Any]) -> str:
    if command["kind"] == "function":
        import json  # approvals without an edit do not need it

        return _in_lines([command["tool"], json.dumps(command["arguments"], ensure_ascii=False)])
    return _in_lines(command["text"] if command["kind"] == "shell" else [command["program"], *command["args"]])


def _replacement(kind: str, text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidRequest("--command was given an empty text", hint="To refuse the call, use whisper-tui deny")
    if kind == "shell":
        return {"text": text}
    if kind == "function":
        return {"arguments": _arguments(text)}
    if kind != "argv":
        raise InvalidRequest(
            "this call runs no command, so there is none to replace", hint="Approve it as it is, or deny it"
        )
    try:
        program, *args = shlex.split(text)
    except ValueError as error:
        raise InvalidRequest(f"--command cannot be split into words: {error}", hint="Check its quotes") from error
    return {"program": program, "args": args}


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool that are written as JSON. Raises `InvalidRequest`."""
    import json  # approvals without an edit do not need it

    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"--command is not valid JSON: {error}", hint="Write the arguments of the tool") from error
    if not isinstance(arguments, dict):
        raise InvalidRequest("the arguments of a tool must be an object", hint='Write them like {"path": "notes.md"}')
    return arguments


def add_approvals(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    approvals = verbs.add("approvals", "show standing approvals, or denials for a session", _approvals)
    approvals.add_argument("--denied", action="store_true", help="show what is denied for the rest of a session")
    approvals.add_argument("--json", action="store_true", help="print one array of objects")
    revoke = verbs.add("revoke", "revoke standing approvals, or lift denials for a session", _revoke)
    revoke.add_argument("ids", nargs="+", metavar="ID", help="an id, as approvals shows it")


def _approvals(options: Options) -> int:
    with reader_of(options) as supervisor:
        kind = "denials" if options.denied else "approvals"
        rows = supervisor.ask("rows", kind=kind) if supervisor is not None else []
    if options.json:
        print_json(rows)
        return 0
    if options.denied:
        print_denials(rows)
        return 0
    print_table(
        ("ID", "AGE", "USES", "UNTIL", "SESSION", "COMMAND", "DIRECTORY"),
        [
            (
                row["id"],
                age(time.time() - row["granted_at"]),
                str(row["uses"]) + (f" of {row['most_uses']}" if row["most_uses"] else ""),
                time.strftime("%H:%M:%S", time.localtime(row["until"])) if row["until"] else "its session ends",
                visible(row["session"]),
                _approved(row),
                visible((row["directory"] or "anywhere") if row["prefix"] or row.get("target") else row["cwd"])
                + (f" at {row['place']}" if row.get("place") else ""),
            )
            for row in rows
        ],
    )
    return 0


def _approved(row: dict[str, Any]) -> str:
    # A supervisor of an earlier version sends no target.
    if row.get("target"):
        return scope_targets(row["target"])
    return f"{command_line(row['prefix'])} …" if row["prefix"] else command_line(row["command"])


def _revoke(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        for id_ in dict.fromkeys(options.ids):
            # `model.session_denial` has this letter too, but importing it would load pydantic.
            if id_.startswith("d"):
                supervisor.ask("lift_denial", denial_id=id_, by=decider())
            else:
                supervisor.ask("revoke", grant_id=id_, by=decider())
            sys.stdout.write(f"Revoked {visible(id_)}\n")
    return 0
