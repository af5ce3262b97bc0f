"""`rules trust` and `rules untrust`: whether what a project's own rules allow is allowed."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from whisper_tui.cli.deciding import decider
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.outside import announce_to, check_outside
from whisper_tui.cli.parsing import Options, home_of
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import visible
from whisper_tui.wire.asking import Asking, asking

if TYPE_CHECKING:
    from whisper_tui.model.event import RulesChanged
    from whisper_tui.model.home import Home


def describe_trust(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rules trust`."""
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the workspace. Without one: your own rules")
    parser.add_argument("--yes", action="store_true", help="do not ask after showing it")


def trust(options: Options) -> int:
    """Show a project's rules, and trust this very content of their file if the user says so."""
    from whisper_tui.config.project_rules import PLACE, ProjectRules, rules_of_content
    from whisper_tui.config.trusted_content import TrustedContent
    from whisper_tui.model.errors import BadConfiguration
    from whisper_tui.policy.examples import by_effect

    check_outside("rules trust", home_of(options))
    if options.directory is None:
        return _trust_own(options)
    root = os.path.realpath(options.directory)
    trusted = TrustedContent(home_of(options), announce_to(home_of(options)))
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

    check_outside("rules untrust", home_of(options))
    root = os.path.realpath(options.directory)
    TrustedContent(home_of(options), announce_to(home_of(options))).forget(root)
    sys.stdout.write(f"The rules in {visible(root)} are not trusted any more\n")
    return DONE


def _trust_own(options: Options) -> int:
    """Show what would be allowed by the user's own files and is not, and trust it if the user says so."""
    from whisper_tui.model.rule_entries import digest_of, is_loose, untrusted

    with asking(home_of(options)) as supervisor:
        files = [changed for changed in _known(supervisor) if untrusted(changed)]
        for changed in files:
            lost = [each for each in changed.trusted if not is_loose(each) and each not in changed.entries]
            sys.stdout.write(f"{visible(changed.path)}\n")
            sys.stdout.writelines(f"  would hold: {_said(entry)}\n" for entry in untrusted(changed))
            sys.stdout.writelines(f"  is gone:    {_said(entry)}\n" for entry in lost)
        if not files:
            sys.stdout.write("Everything that your rules allow holds\n")
            return DONE
        sys.stdout.flush()
        if not options.yes and not _agreed():
            sys.stderr.write("whisper-tui: Not trusted: what these entries allow is asked.\n")
            return REFUSED
        for changed in files:
            digest = digest_of(changed.entries)
            supervisor.ask("trust_rules", path=changed.path, digest=digest, by=decider())
    sys.stdout.write("Trusted until a file changes\n")
    return DONE


def waiting_for_trust(home: "Home") -> int:
    """How many entries of the user's own files would allow something and do not hold. 0 where no supervisor runs."""
    from whisper_tui.model.rule_entries import untrusted

    try:
        with asking(home, start=False) as supervisor:
            return sum(len(untrusted(changed)) for changed in _known(supervisor))
    except WhisperError:
        return 0


def _known(supervisor: Asking) -> "list[RulesChanged]":
    from whisper_tui.model.event import RulesChanged

    return [RulesChanged.model_validate(each) for each in supervisor.ask("rule_files")]


def _said(entry: str) -> str:
    return visible(entry.rpartition(" #")[0] or entry)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    sys.stdout.write("Trust exactly this? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
