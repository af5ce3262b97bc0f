"""`install`, `uninstall` and `doctor`: write whisper_tui into a client's configuration, and prove that it works."""

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.agents.known_clients import INSTALLABLE, profile_of
from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.supervisor_control import settled_status, watched_from
from whisper_tui.cli.output_format import cannot_work, place_lines, print_json, styled_diff, wrapped
from whisper_tui.cli.subcommand import DONE, REFUSED, Options, Subcommands, complain, home_of, supervisor_of
from whisper_tui.model.errors import BadConfiguration, InvalidRequest, Unavailable, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.system.own_program import cache_with_this_program, installed_from, installed_program
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.rendezvous import home_options

if TYPE_CHECKING:
    from whisper_tui.agents.client_files import Change, InstallRequest, Launch
    from whisper_tui.agents.findings import Check, DoctorContext, Report
    from whisper_tui.model.call import Unasked


def add_install(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    install = verbs.add(
        "install",
        "connect an agent client: its commands wait in the queue",
        _install,
        details="It shows the changes of each file, asks, and keeps a backup beside each. Parts that were installed "
        "before and are not requested now are removed.",
        examples=(
            "install claude",
            "install codex --project --dry-run",
        ),
    )
    _add_common(install)
    install.add_argument("--no-hook", action="store_true", help="leave the client's own shell tool alone")
    install.add_argument(
        "--commands-only",
        action="store_true",
        help="supervise only commands, not edits, web requests, other servers' tools and sub-agents",
    )
    install.add_argument("--no-mcp", action="store_true", help="do not offer whisper_tui's tools")
    install.add_argument(
        "--agent-runs",
        action="store_true",
        help="let the agent run approved commands itself; the cockpit does not see them run",
    )
    install.add_argument(
        "--executor",
        action="store_true",
        help="run the commands, typed input and edits of Codex in whisper_tui; without it, nothing runs",
    )
    install.add_argument(
        "--gateway",
        action="store_true",
        help="put the other MCP servers that the client starts behind the queue, too",
    )
    uninstall = verbs.add(
        "uninstall",
        "remove what install wrote",
        _uninstall,
        details="A file that was not edited since is restored exactly; from others only the entries of whisper_tui are "
        "removed.",
    )
    _add_common(uninstall)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=INSTALLABLE, metavar="CLIENT", help=f"one of {', '.join(INSTALLABLE)}")
    parser.add_argument(
        "--project", nargs="?", const=".", metavar="DIR", help="only for the project in DIR (without DIR: here)"
    )
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


def _install(options: Options) -> int:
    if options.executor and options.client != "codex":
        raise InvalidRequest(f"{options.client} runs its commands itself", hint="Leave --executor out")
    if options.no_hook and options.no_mcp and not options.gateway and not options.executor:
        raise InvalidRequest("there is nothing to install", hint="Leave out --no-hook or --no-mcp")
    _check_that_the_program_lasts()
    request = _install_request(
        options,
        hook=not options.no_hook,
        tools=not options.commands_only,
        mcp=not options.no_mcp,
        agent_runs=options.agent_runs,
        gateway=options.gateway,
        executor=options.executor,
    )
    code = _carry_out(options, request)
    if code == DONE and not options.dry_run:
        _ask_level(options)
    return code


def _check_that_the_program_lasts() -> None:
    """Write no path into a client's settings that may vanish: without its hook, a client runs everything unasked."""
    if cache := cache_with_this_program():
        source = shlex.quote(installed_from())
        raise InvalidRequest(
            f"this whisper-tui runs from a cache, {cache}. When that is emptied, the hook that install writes would be "
            "gone, and the client would run everything unasked",
            hint=f"Install it first, with: uv tool install {source}   or: pipx install {source}",
        )


def _ask_level(options: Options) -> None:
    """Ask how much may run unasked, unless a file of the user says it, and say what comes next."""
    from whisper_tui.cli.commands.manage_rules import changing_rules
    from whisper_tui.config import load
    from whisper_tui.config.rule_files import RuleFiles
    from whisper_tui.policy.rules.rule import UNASKED
    from whisper_tui.present.unasked_text import MEANING

    home = home_of(options)
    try:
        is_said = RuleFiles(home, load(home).rules).says_level()
    except WhisperError:
        is_said = True  # whatever it says, nothing holds before it is corrected, and `doctor` reports it
    if not is_said:
        sys.stdout.write("\nWhat may run without asking?\n")
        sys.stdout.writelines(f"  {at}  {level:<9}  {MEANING[level]}\n" for at, level in enumerate(UNASKED, 1))
        if options.yes or not sys.stdin.isatty():
            sys.stdout.write("2 holds; whisper-tui unasked changes it.\n")
        else:
            sys.stdout.write("The workspace is the project in which the agent works. ")
            sys.stdout.write("What reaches further waits for you in any case.\n")
            if (chosen := _chosen_level()) is not None:
                try:
                    with changing_rules("unasked", options) as rules:
                        rules.ask("set_unasked", level=chosen, by=decider())
                except WhisperError as error:
                    complain(error.sentence())
            sys.stdout.write("whisper-tui unasked, or ( in the cockpit, changes it.\n")
    sys.stdout.write("Next: whisper-tui opens the cockpit, in which the calls of your agents appear.\n")


def _chosen_level() -> "Unasked | None":
    """Return the level that a human types, by its number or its name. None: none, so that the default holds."""
    from whisper_tui.policy.rules.rule import UNASKED

    named = {name: level for at, level in enumerate(UNASKED, 1) for name in (str(at), level)}
    while True:
        sys.stdout.write("1, 2 or 3 [2]: ")
        sys.stdout.flush()
        typed = sys.stdin.readline().strip().lower()
        if not typed or typed in named:
            return named.get(typed)
        sys.stdout.write(f"{visible(typed)} is none of them. ")


def _uninstall(options: Options) -> int:
    return _carry_out(options, _install_request(options, hook=False, mcp=False))


def _install_request(options: Options, *, hook: bool, mcp: bool, **parts: bool) -> "InstallRequest":
    from whisper_tui.agents.client_files import InstallRequest

    return InstallRequest(
        launch=launch_of(options),
        environ=dict(os.environ),
        project=project_of(options),
        hook=hook,
        mcp=mcp,
        **parts,
    )


def project_of(options: Options) -> Path | None:
    """The project that the options name. Raises `InvalidRequest`."""
    if options.project is None:
        return None
    project = Path(os.path.realpath(options.project))
    if not project.is_dir():
        raise InvalidRequest(f"there is no directory {options.project}", hint="Name the project's directory")
    return project


def launch_of(options: Options) -> "Launch":
    """Return how a client starts this installation for the instance that the options choose."""
    # The directories are always written out, the default ones too: a project can change the variables that choose them.
    from whisper_tui.agents.client_files import Launch

    return Launch(tuple(installed_program()), tuple(home_options(home_of(options))))


def _carry_out(options: Options, request: "InstallRequest") -> int:
    from whisper_tui.agents.client_files import apply_changes, changes

    client = profile_of(options.client)
    if client.plan_install is None:
        raise InvalidRequest(f"nothing can be written for {client.title}", hint="See docs/connect.md")
    plan = client.plan_install(request)
    planned = changes(plan.files)
    if not planned:
        sys.stdout.write(f"{client.title}: nothing to change\n")
    elif not _agreed(options, planned):
        return DONE if options.dry_run else REFUSED
    else:
        apply_changes(planned)
        _report(planned)
    for note in plan.notes:
        sys.stdout.write(f"{note}.\n")
    return DONE


def _agreed(options: Options, planned: "list[Change]") -> bool:
    """Show the changes, and ask about them unless that was answered on the command line."""
    from whisper_tui.agents.client_files import difference

    for change in planned:
        sys.stdout.writelines(f"{styled_diff(line)}\n" for line in difference(change))
    if options.dry_run:
        sys.stdout.write("Nothing was written.\n")
        return False
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "there is nobody to ask, so nothing was written", hint="Use --yes, or --dry-run to see the changes"
        )
    sys.stdout.write("Write this? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    sys.stdout.write("Nothing was written.\n")
    return False


def _report(planned: "list[Change]") -> None:
    from whisper_tui.agents.client_files import backup_of
    from whisper_tui.agents.shell_gate import is_gate

    for change in planned:
        kept = f" (before: {backup_of(change.path)})" if change.backup is not None else ""
        sys.stdout.write(f"{'Removed' if change.after is None else 'Wrote'} {change.path}{kept}\n")
    sys.stdout.write("Programs that are running use it after their next start.\n")
    if any(change.after is None and is_gate(str(change.path)) for change in planned):
        sys.stdout.write("Until then they start no commands, because their shell was removed.\n")


DELEGATE = "To have that: systemd-run --user --scope -p Delegate=yes whisper-tui supervise --replace"
SIGNS = {"good": "✓ good", "note": "! note", "bad": "✗ bad "}


def add_doctor(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "doctor",
        "prove that the hook of each agent client stops a command, and report problems",
        _examine,
        details="It sends a harmless test command through the client's hook, which must stop it. Without CLIENT "
        "it examines all clients, and prints what was stopped, and what is worth knowing; with one, all checks. It "
        "also reports problems of the supervisor, and ends with 0 only if there are none and everything installed was "
        "proved.",
        examples=(
            "doctor",
            "doctor claude",
        ),
    )
    parser.add_argument(
        "client", nargs="?", choices=INSTALLABLE, metavar="CLIENT", help=f"one of {', '.join(INSTALLABLE)}"
    )
    parser.add_argument("--project", default=".", metavar="DIR", help="the project to look at (default: here)")
    parser.add_argument("--json", action="store_true", help="print one object")


def _examine(options: Options) -> int:
    from whisper_tui.agents.doctor import examine
    from whisper_tui.agents.findings import DoctorContext
    from whisper_tui.model.preview import NOT_POSSIBLE

    scene = DoctorContext(launch_of(options), dict(os.environ), project_of(options) or Path.cwd())
    names = INSTALLABLE if options.client is None else (options.client,)
    reports = []
    if not options.json and options.client is None:
        sys.stdout.write("Clients\n")
    for name in names:
        report = examine(name, scene, asked_for=options.client is not None)
        report.checks.extend(_own_rules(name, report.title, scene))
        reports.append(report)
        if not options.json and (options.client is not None or not report.is_absent):
            _print(report, whole=options.client is not None)
    status, socket = _status(options), str(Path(home_of(options).runtime) / SOCKET)
    problem = status["problem"] if status else None
    previews = _previews(options, status)
    absent = [report.title for report in reports if report.is_absent]
    if not options.json and options.client is None and absent:
        _line("note", f"not installed: {', '.join(absent)}")
    if not options.json:
        _print_supervisor(status, socket)
        _print_previews(previews)
    proved = problem is None and all(report.proved for report in reports)
    if options.json:
        clients = [report.as_json() for report in reports]
        about = {key: status and status[key] for key in ("counts", "sandbox", "sandbox_problem")}
        about |= {"supervisor": status and {"pid": status["pid"], "home": status["home"], "socket": socket}}
        about |= {key: (status or {}).get(key, []) for key in ("desks", "places")}
        possible = not previews.startswith(NOT_POSSIBLE)
        about |= {"previews": previews if possible else None, "previews_problem": None if possible else previews}
        print_json({"proved": proved, "problem": problem, **about, "clients": clients})
    return DONE if proved else REFUSED


def _own_rules(name: str, title: str, scene: "DoctorContext") -> "list[Check]":
    """Return the client's own rules for denying and asking, which hold in whisper_tui as well."""
    from whisper_tui.agents.findings import bad, good, note
    from whisper_tui.cli.client_rules import ClientRules

    user_directory = Path(scene.environ.get("HOME") or Path.home())
    rules = ClientRules(user_directory).of_client(profile_of(name).hook.name, str(scene.project), scene.environ)
    if rules.broken:
        return [bad("rules", f"You are asked about every call of {title}: {rules.broken}", "Correct the file")]
    checks = []
    if rules.deny or rules.ask or rules.read_only is False:
        every = ", and it asks about every command" if rules.read_only is False else ""
        sentence = f"The rules of {title} itself apply: {len(rules.deny)} deny and {len(rules.ask)} ask{every}"
        checks.append(good("rules", sentence))
    checks += [note("rules", rule.justification, "Write it more simply") for rule in rules.ask if rule.anything]
    return checks


def _status(options: Options) -> dict[str, Any] | None:
    """The supervisor about itself. None: none runs."""
    try:
        with supervisor_of(options, start=False) as supervisor:
            status: dict[str, Any] = supervisor.ask("status")
    except Unavailable:
        return None
    return status


def _print_supervisor(status: dict[str, Any] | None, socket: str) -> None:
    sys.stdout.write("Supervisor\n")
    if status is None:
        _line("note", f"none runs; agents on this machine start one when they need it, at {visible(socket)}")
        return
    _line("good", f"agents on this machine ask this one: pid {status['pid']}, at {visible(socket)}")
    if status.get("desks"):
        _line("good", watched_from(status["desks"]))
    if status["problem"] is not None:
        _line("bad", cannot_work(status["problem"]))
    places = status.get("places", ())
    for place, line in zip(places, place_lines(places), strict=True):
        _line("good" if place["reached"] else "bad" if place["problem"] else "note", line)
    _line("good" if status["sandbox_problem"] is None else "note", f"sandbox: {status['sandbox']}")
    if status["counts"]:
        _line("good", f"each run has a control group, which counts {' and '.join(status['counts'])}")
    else:
        _line("note", f"memory limits count each process alone, not a whole run. {DELEGATE}")


def _previews(options: Options, status: dict[str, Any] | None) -> str:
    """Return how commands are previewed, as a clause: the supervisor knows it, because it is what previews them."""
    if status is not None and (said := status.get("previews")) is not None:  # An older supervisor does not say.
        return said or settled_status(options)["previews"] or "it is not known yet whether commands can be previewed"
    import asyncio
    import tempfile

    from whisper_tui.config.configuration import read
    from whisper_tui.supervisor.runs.preview_probe import preview_support

    home = home_of(options)
    try:
        wanted = read(home).supervisor.previews
    except BadConfiguration:
        # The supervisor's own check reports it.
        wanted = "auto"
    state = Path(home.state)
    with tempfile.TemporaryDirectory(prefix="preview-", dir=state if state.is_dir() else None) as place:
        return asyncio.run(preview_support(place, str(Path.home()), wanted)).words


def _print_previews(words: str) -> None:
    """Print how commands are previewed, and why better ways do not work."""
    from whisper_tui.model.preview import EXACT_WAYS, NOT_POSSIBLE, WAY_NAMES

    exact = tuple(f"with {WAY_NAMES[way]}" for way in EXACT_WAYS)
    if words.startswith(NOT_POSSIBLE):
        said = f"commands cannot be previewed here{words.removeprefix(NOT_POSSIBLE)}. See docs/preview.md"
    else:
        said = f"previews: {words}"
    _line("good" if words.startswith(exact) else "note", visible(said))


def _print(report: "Report", *, whole: bool) -> None:
    """Print all checks of a client, or only what was proved and what is worth knowing."""
    from whisper_tui.agents.findings import CheckState

    fine = [check for check in report.checks if check.state is CheckState.GOOD]
    proofs = [check for check in fine if check.subject == "gate"] or fine[-1:]
    if whole:
        sys.stdout.write(f"{report.title}\n")
    for check in report.checks:
        if not whole and check in fine and check not in proofs:
            continue
        of = "" if whole or report.title in check.sentence else f"{report.title}: "
        _line(check.state, visible(of + check.sentence + (f". {check.hint}" if check.hint else "")))
    sys.stdout.flush()


def _line(state: str, text: str) -> None:
    """Print the result of a check, wrapped at words on a terminal."""
    sys.stdout.write(wrapped(f"  {SIGNS[state]}  {text}", " " * 10) + "\n")
