"""`install` and `uninstall`: whisper_tui in the configuration of an agent client."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.wire.rendezvous import choice_of

if TYPE_CHECKING:
    from whisper_tui.install.files import Change
    from whisper_tui.install.launch import Launch
    from whisper_tui.install.wish import Wish

CLIENTS = ("claude", "codex", "gemini", "opencode")
"""Named here once more, so that the command line is known without loading how each of them is written to."""


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    install = verbs.add(
        "install",
        "let an agent client's commands wait in the queue, by writing into its configuration",
        _install,
        details="It shows what would change in which file, asks, and keeps a backup beside each file. What was "
        "installed before and is not asked for now is taken out.",
    )
    _add_common(install)
    install.add_argument("--no-hook", action="store_true", help="leave the client's own shell tool alone")
    install.add_argument("--no-mcp", action="store_true", help="do not offer whisper_tui's tools")
    install.add_argument(
        "--agent-runs", action="store_true", help="let the agent run what was approved; the cockpit does not see it"
    )
    uninstall = verbs.add(
        "uninstall",
        "take back what install wrote",
        _uninstall,
        details="A file that nobody has edited since is as it was, to the letter; of others, only the entries of "
        "whisper_tui go.",
    )
    _add_common(uninstall)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument(
        "--project", nargs="?", const=".", metavar="DIR", help="only for the project in DIR (without DIR: here)"
    )
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


def _install(options: Options) -> int:
    if options.no_hook and options.no_mcp:
        raise InvalidRequest("there is nothing to install", hint="Leave out --no-hook or --no-mcp")
    return _carry_out(
        options, _wish(options, hook=not options.no_hook, mcp=not options.no_mcp, agent_runs=options.agent_runs)
    )


def _uninstall(options: Options) -> int:
    return _carry_out(options, _wish(options, hook=False, mcp=False))


def _wish(options: Options, *, hook: bool, mcp: bool, agent_runs: bool = False) -> "Wish":
    from whisper_tui.install.wish import Wish

    return Wish(
        launch=launch_of(options),
        environ=dict(os.environ),
        project=project_of(options),
        hook=hook,
        mcp=mcp,
        agent_runs=agent_runs,
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
    """How a client starts this very installation, for the instance that the options choose, the usual one too.

    It is always named: what a client starts must not have to find it, for projects can change how that comes out.
    """
    from whisper_tui.install.launch import PROGRAM, Launch

    beside = Path(sys.executable).with_name(PROGRAM)
    program = (str(beside),) if os.access(beside, os.X_OK) else (sys.executable, "-m", "whisper_tui")
    return Launch(program, tuple(choice_of(home_of(options))))


def _carry_out(options: Options, wish: "Wish") -> int:
    from whisper_tui.install.clients import client_of
    from whisper_tui.install.files import changes
    from whisper_tui.install.writing import carry_out

    client = client_of(options.client)
    fulfilment = client.fulfil(wish)
    planned = changes(fulfilment.files)
    if not planned:
        sys.stdout.write(f"{client.TITLE}: nothing to change\n")
    elif not _agreed(options, planned):
        return DONE if options.dry_run else REFUSED
    else:
        carry_out(planned)
        _report(planned)
    for note in fulfilment.notes:
        sys.stdout.write(f"{note}.\n")
    return DONE


def _agreed(options: Options, planned: "list[Change]") -> bool:
    """Show the changes, and ask about them unless that was answered on the command line."""
    from whisper_tui.install.writing import difference

    for change in planned:
        sys.stdout.writelines(f"{line}\n" for line in difference(change))
    if options.dry_run:
        sys.stdout.write("Nothing was written.\n")
        return False
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequest("there is nobody to ask, so nothing was written", hint="Say --yes, or --dry-run to look")
    sys.stdout.write("Write this? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    sys.stdout.write("Nothing was written.\n")
    return False


def _report(planned: "list[Change]") -> None:
    from whisper_tui.install.files import backup_of

    for change in planned:
        kept = f" (before: {backup_of(change.path)})" if change.backup is not None else ""
        sys.stdout.write(f"{'Removed' if change.after is None else 'Wrote'} {change.path}{kept}\n")
    sys.stdout.write("Programs that run already take it up when they are started anew.\n")
