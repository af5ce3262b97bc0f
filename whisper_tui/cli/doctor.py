"""`doctor`: is the gate that was installed into a client really shut."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.asking import asking
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.install import CLIENTS, launch_of, project_of
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.cli.words import cannot_work
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.install.doctor.found import Scene
    from whisper_tui.install.doctor.report import Check, Report

DELEGATE = "To have that: systemd-run --user --scope -p Delegate=yes whisper-tui supervise --replace"
SESSION_NAMES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}
"""How the clients are called in sessions."""
SIGNS = {"good": "✓ good", "note": "! note", "bad": "✗ bad "}


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "doctor",
        "prove that the hook of each agent client stops a command, and say what is wrong",
        _examine,
        details="A canary, a harmless command that nobody is asked about, goes the way of the client's commands and "
        "has to be stopped. Without CLIENT, all clients are looked at. It says what keeps the supervisor from working, "
        "too, and ends with 0 only if that is nothing and all that is installed was proved.",
    )
    parser.add_argument("client", nargs="?", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("--project", default=".", metavar="DIR", help="the project to look at (default: here)")
    parser.add_argument("--json", action="store_true", help="print one object")


def _examine(options: Options) -> int:
    from whisper_tui.install.doctor.examine import examine
    from whisper_tui.install.doctor.found import Scene

    scene = Scene(launch_of(options), dict(os.environ), project_of(options) or Path.cwd())
    names = CLIENTS if options.client is None else (options.client,)
    reports = []
    for name in names:
        report = examine(name, scene, asked_for=options.client is not None)
        report.checks.extend(_own_rules(name, report.title, scene))
        reports.append(report)
        if not options.json:
            _print(report)
    status = _status(options)
    problem = status["problem"] if status else None
    if not options.json:
        _print_supervisor(status)
    proved = problem is None and all(report.proved for report in reports)
    if options.json:
        clients = [report.as_json() for report in reports]
        about = {key: status and status[key] for key in ("counts", "sandbox", "sandbox_problem")}
        print_json({"proved": proved, "problem": problem, **about, "clients": clients})
    return DONE if proved else REFUSED


def _own_rules(name: str, title: str, scene: "Scene") -> "list[Check]":
    """What the client denies and asks about by itself, which holds in whisper_tui as well."""
    from whisper_tui.config.client_rules import ClientRules
    from whisper_tui.install.doctor.report import bad, good, note

    user_directory = Path(scene.environ.get("HOME") or Path.home())
    rules = ClientRules(user_directory).of_client(SESSION_NAMES[name], str(scene.project), scene.environ)
    if rules.broken:
        return [bad("rules", f"Everything of {title} is asked: {rules.broken}", "Correct the file")]
    checks = []
    if rules.deny or rules.ask or rules.read_only is False:
        every = ", and it asks about every command" if rules.read_only is False else ""
        sentence = f"The rules of {title} itself hold: {len(rules.deny)} deny and {len(rules.ask)} ask{every}"
        checks.append(good("rules", sentence))
    checks += [note("rules", rule.justification, "Write it more simply") for rule in rules.ask if rule.anything]
    return checks


def _status(options: Options) -> dict[str, Any] | None:
    """The supervisor about itself. None: none runs."""
    try:
        with asking(options, start=False) as supervisor:
            status: dict[str, Any] = supervisor.ask("status")
    except Unavailable:
        return None
    return status


def _print_supervisor(status: dict[str, Any] | None) -> None:
    sys.stdout.write("Supervisor\n")
    if status is None:
        sys.stdout.write(f"  {SIGNS['note']}  none runs: whether runs have control groups is known once one does\n")
        return
    if status["problem"] is not None:
        sys.stdout.write(f"  {SIGNS['bad']}  {cannot_work(status['problem'])}\n")
    sign = SIGNS["good"] if status["sandbox_problem"] is None else SIGNS["note"]
    sys.stdout.write(f"  {sign}  sandbox: {status['sandbox']}\n")
    sys.stdout.write(f"  {_about_groups(status['counts'])}\n")


def _about_groups(counts: list[str] | None) -> str:
    """Whether each run has a control group, and what that counts."""
    if counts is None:
        return f"{SIGNS['note']}  runs have no control groups: memory is limited for each process alone. {DELEGATE}"
    if not counts:
        return f"{SIGNS['note']}  each run has a control group, in which memory is not counted. {DELEGATE}"
    return f"{SIGNS['good']}  each run has a control group, which counts {' and '.join(counts)}"


def _print(report: "Report") -> None:
    sys.stdout.write(f"{report.title}\n")
    for check in report.checks:
        hint = f". {check.hint}" if check.hint else ""
        sys.stdout.write(f"  {SIGNS[check.state]}  {visible(check.sentence + hint)}\n")
    sys.stdout.flush()
