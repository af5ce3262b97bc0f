"""`show`: all that is known about one call."""

import sys
import time
from collections.abc import Iterator
from typing import Any

from whisper_tui.cli.asking import asking
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.cli.words import command_line, risk_sign, standing
from whisper_tui.model.masking import MASK
from whisper_tui.model.text import visible


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "show",
        "show all that is known about one call",
        _show,
        details="A call that waits for a decision is shown whole. In every other, secrets are replaced by "
        f"{MASK}; the journal keeps what ran.",
    )
    parser.add_argument("id", metavar="ID", help="number of the call")
    parser.add_argument("--unmasked", action="store_true", help="show the secrets in the command, too")
    parser.add_argument("--json", action="store_true", help="print one object")


def _show(options: Options) -> int:
    with asking(options) as supervisor:
        (row,) = supervisor.ask("rows", kind="show", call_id=options.id, unmasked=options.unmasked)
        if row["state"] == "queued" and row["reason"] is None:
            row["reason"] = supervisor.ask("status").get("busy") or None
    if options.json:
        print_json(row)
        return 0
    for name, value in _facts(row):
        shown = visible(value, keep_lines=True).replace("\n", "\n" + " " * 14)
        sys.stdout.write(f"{name:<12}  {shown}\n")
    return 0


def _facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "call", f"{row['id']}, {standing(row, time.time() - row['since'])}"
    if row["reason"]:
        yield "because", row["reason"]
    yield "tool", row["tool"]
    yield "session", f"{row['session']} ({row['session_id']})"
    if row["client"]:
        yield "agent", " ".join(filter(None, (row["client"], row["model"], row["asker"] and f"({row['asker']})")))
    if row.get("blocked"):
        yield "blocked", row["blocked"]["words"]
    if row["agent_gave_up"]:
        yield "agent gone", f"it no longer waits: {row['agent_gave_up']}"
    if row["description"]:
        yield "description", row["description"]
    yield "command", _command(row["command"])
    yield "directory", row["cwd"]
    if row["asked"]:
        yield "asked for", _command(row["asked"]["command"])
        yield "in", row["asked"]["cwd"]
    yield from _conditions(row["spec"])
    yield from _limits(row["limits"], row["summed"])
    yield from _judgement(row)
    yield from _run(row)


def _command(command: list[str] | str) -> str:
    """A shell's text keeps its lines."""
    return command if isinstance(command, str) else command_line(command)


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


def _judgement(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if row["resolved"] and row["resolved"]["program"]:
        yield "program", row["resolved"]["program"]
    if row["verdict"]:
        yield "judged", f"{row['verdict']['kind']}: {row['verdict']['reason']}"
        for risk in row["risks"]:
            yield "risk", f"{risk_sign(risk)} {risk['sentence']}"
        for prefix in row["verdict"]["prefixes"]:
            yield "remember as", f"{command_line(prefix)} …"
    if row["returned_because"]:
        yield "asked again", row["returned_because"]
    if row["decision"]:
        by = row["decided_by"] or {"surface": "", "who": ""}
        yield "decided", f"{row['decision']} by {by['who']} ({by['surface']})"
    if row["sandbox"]:
        also = ", ".join(row["sandbox"]["execute"])
        yield "sandbox", row["sandbox"]["words"] + (f"; it may also run programs in {also}" if also else "")


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
