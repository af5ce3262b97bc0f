"""`rules trust` and `rules untrust`: whether what a project's own rules allow is allowed."""

import argparse
import os
import sys

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.outside import check_outside
from whisper_tui.cli.parsing import Options, home_of
from whisper_tui.model.text import visible


def describe_trust(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rules trust`."""
    parser.add_argument("directory", metavar="DIR", help="the workspace")
    parser.add_argument("--yes", action="store_true", help="do not ask after showing it")


def trust(options: Options) -> int:
    """Show a project's rules, and trust this very content of their file if the user says so."""
    from whisper_tui.config.project_rules import PLACE, ProjectRules, rules_of_content
    from whisper_tui.config.trusted_content import TrustedContent
    from whisper_tui.model.errors import BadConfiguration
    from whisper_tui.policy.examples import by_effect

    check_outside("rules trust")
    root = os.path.realpath(options.directory)
    trusted = TrustedContent(home_of(options))
    content = ProjectRules(trusted).content(root)
    rules = rules_of_content(content, str(PLACE))
    if rules.broken:
        raise BadConfiguration(rules.broken, hint="Correct it, then trust it")
    sys.stdout.write(visible(content.decode(), keep_lines=True).rstrip("\n") + "\n\n")
    counted = ", ".join(
        f"{sum(effect == each for each, _ in by_effect(rules))} {effect}" for effect in ("deny", "ask", "allow")
    )
    sys.stdout.write(f"Rules of {visible(root)}: {counted}; those that allow would hold there\n")
    sys.stdout.flush()
    if not options.yes and not _agreed():
        sys.stderr.write("whisper-tui: Not trusted: rules of the project that allow do not hold.\n")
        return REFUSED
    trusted.trust(root, content)
    sys.stdout.write("Trusted until the file changes\n")
    return DONE


def untrust(options: Options) -> int:
    """Take the trust back."""
    from whisper_tui.config.trusted_content import TrustedContent

    check_outside("rules untrust")
    root = os.path.realpath(options.directory)
    TrustedContent(home_of(options)).forget(root)
    sys.stdout.write(f"The rules in {visible(root)} are not trusted any more\n")
    return DONE


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    sys.stdout.write("Trust exactly this? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
