"""`doctor`: is the gate that was installed into a client really shut."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.asking import asking
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.install import CLIENTS, launch_of, project_of
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.cli.words import cannot_work
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.install.doctor.report import Report

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
        reports.append(report)
        if not options.json:
            _print(report)
    problem = _problem_of_supervisor(options)
    if problem is not None and not options.json:
        sys.stdout.write(f"Supervisor\n  {SIGNS['bad']}  {cannot_work(problem)}\n")
    proved = problem is None and all(report.proved for report in reports)
    if options.json:
        print_json({"proved": proved, "problem": problem, "clients": [report.as_json() for report in reports]})
    return DONE if proved else REFUSED


def _problem_of_supervisor(options: Options) -> str | None:
    """What keeps the supervisor from working. None: nothing, or none runs."""
    try:
        with asking(options, start=False) as supervisor:
            problem: str | None = supervisor.ask("status")["problem"]
    except Unavailable:
        return None
    return problem


def _print(report: "Report") -> None:
    sys.stdout.write(f"{report.title}\n")
    for check in report.checks:
        hint = f". {check.hint}" if check.hint else ""
        sys.stdout.write(f"  {SIGNS[check.state]}  {visible(check.sentence + hint)}\n")
    sys.stdout.flush()
