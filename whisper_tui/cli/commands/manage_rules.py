"""`rules`: list, change, test, trust, import and export the rules that decide without a human."""

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import masked_line, print_json, print_table
from whisper_tui.cli.subcommand import (
    DONE,
    REFUSED,
    Options,
    Run,
    Subcommands,
    add_action,
    add_host_option,
    home_of,
    supervisor_of,
)
from whisper_tui.model.errors import NotAllowed, Unavailable, WhisperError
from whisper_tui.model.secrets import masked_json
from whisper_tui.model.text import visible
from whisper_tui.wire.light_client import LightClient, light_client

if TYPE_CHECKING:
    from whisper_tui.config.rule_files import RuleFiles
    from whisper_tui.model.event import RulesChanged
    from whisper_tui.model.shown_rules import ProjectRules, RuleList, ShownRule
    from whisper_tui.policy.rules.rule import Rule
    from whisper_tui.system.state_directory import Directories


def check_outside(what: str, home: "Directories") -> None:
    """Raises `NotAllowed` inside a supervised command, and has the supervisor record the attempt.

    `what`: a clause's subject, like `rules add`.
    """
    from whisper_tui.wire.peers import why_supervised_here

    problem = why_supervised_here()
    if problem is not None:
        have_it_noted(home)
        raise NotAllowed(f"{what} was refused because {problem}", hint="Only a human, from a terminal, may do this")


def have_it_noted(home: "Directories") -> None:
    """Ask the supervisor to stop, which it refuses a supervised command. It judges by the same line of processes."""
    from whisper_tui.wire.peers import is_refused_for_ever_here

    # A session of ssh that may not decide now may do so a moment later, and then it would stop.
    if not is_refused_for_ever_here():
        return
    with suppress(WhisperError), light_client(home, start=False) as supervisor:
        supervisor.ask("shutdown")


class RuleFilesAlone:
    """The rule files of an instance that has never had a supervisor; the first one trusts what it finds in them."""

    def __init__(self, home: "Directories") -> None:
        from whisper_tui.config import load
        from whisper_tui.config.rule_files import RuleFiles

        self._home = home
        self._files = RuleFiles(home, load(home).rules)

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Do what the operation of the supervisor does. Raises `WhisperError`."""
        match operation:
            case "rule_list":
                return self._files.listed(arguments["roots"]).model_dump(mode="json")
            case "add_rule":
                from whisper_tui.policy.rules.rule import Rule

                return self._files.add(arguments["effect"], Rule.model_validate(arguments["definition"]))
            case "set_unasked":
                return self._files.set_unasked(arguments["level"])
            case "remove_rule":
                return self._files.remove(arguments["name"])
            case "trust_project" if arguments["trusted"]:
                return self._files.trust_project(arguments["root"], arguments["digest"])
            case _:
                return self._files.distrust_project(arguments["root"])


@contextmanager
def changing_rules(what: str, options: Options) -> "Iterator[LightClient | RuleFilesAlone]":
    """Yield the supervisor, or the rule files where there has never been one.

    `what`: a clause's subject, like `rules add`. Raises `NotAllowed` for a supervised command.
    """
    home = home_of(options)
    # A supervisor refuses by itself, and records who has tried.
    if (Path(home.state) / "journal.sqlite").exists():
        with light_client(home) as supervisor:
            yield supervisor
    else:
        check_outside(what, home)
        yield RuleFilesAlone(home)


@contextmanager
def reading_rules(options: Options) -> "Iterator[LightClient | RuleFilesAlone]":
    """The supervisor if it runs, else the rule files."""
    with ExitStack() as stack:
        try:
            asked: LightClient | RuleFilesAlone = stack.enter_context(supervisor_of(options, start=False))
        except Unavailable:
            asked = RuleFilesAlone(home_of(options))
        yield asked


def _listed(asked: "LightClient | RuleFilesAlone", *roots: str) -> "RuleList":
    from whisper_tui.model.shown_rules import RuleList

    return RuleList.model_validate(asked.ask("rule_list", roots=roots))


def describe_trust(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rules trust`."""
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the workspace. Without one: your own rules")
    parser.add_argument("--yes", action="store_true", help="do not ask after showing it")


def trust(options: Options) -> int:
    """Show a project's rules, and trust this very content of their file if the user says so."""
    if options.directory is None:
        return _trust_own(options)
    root = os.path.realpath(options.directory)
    with changing_rules("rules trust", options) as asked:
        project = _project_of(_listed(asked, root), root)
        sys.stdout.write(visible(project.text, keep_lines=True).rstrip("\n") + "\n\n")
        counted = ", ".join(
            f"{sum(rule.effect == effect for rule in project.rules)} {effect}" for effect in ("deny", "ask", "allow")
        )
        sys.stdout.write(f"Rules of {visible(root)}: {counted}; those that allow would apply there\n")
        sys.stdout.flush()
        if not options.yes and not _agreed():
            sys.stderr.write("whisper-tui: Not trusted: the project's allow rules do not apply.\n")
            return REFUSED
        asked.ask("trust_project", root=root, by=decider(), digest=project.digest, trusted=True)
    sys.stdout.write("Trusted until the file changes\n")
    return DONE


def _project_of(listed: "RuleList", root: str) -> "ProjectRules":
    """The rules file of a workspace. Raises `BadConfiguration` if it is missing or cannot be read."""
    from whisper_tui.model.errors import BadConfiguration

    if not listed.projects:
        raise BadConfiguration(f"there are no rules in {root}", hint="Name a directory whose project has rules")
    (project,) = listed.projects
    if project.broken:
        raise BadConfiguration(project.broken, hint="Correct it, then trust it")
    return project


def untrust(options: Options) -> int:
    """Take the trust back."""
    root = os.path.realpath(options.directory)
    with changing_rules("rules untrust", options) as asked:
        asked.ask("trust_project", root=root, by=decider(), trusted=False)
    sys.stdout.write(f"The rules in {visible(root)} are not trusted any more\n")
    return DONE


def _trust_own(options: Options) -> int:
    """Show what would be allowed by the user's own files and is not, and trust it if the user says so."""
    from whisper_tui.model.errors import BadConfiguration
    from whisper_tui.model.event import entries_digest, entry_allows, untrusted_entries

    with light_client(home_of(options)) as supervisor:
        if broken := _listed(supervisor).broken:
            raise BadConfiguration(broken, hint="Correct it, then trust it")
        files = [changed for changed in _known(supervisor) if untrusted_entries(changed)]
        for changed in files:
            lost = [each for each in changed.trusted if not entry_allows(each) and each not in changed.entries]
            sys.stdout.write(f"{visible(changed.path)}\n")
            sys.stdout.writelines(f"  would hold: {_said(entry)}\n" for entry in untrusted_entries(changed))
            sys.stdout.writelines(f"  is gone:    {_said(entry)}\n" for entry in lost)
        if not files:
            sys.stdout.write("All of your allow rules are trusted\n")
            return DONE
        sys.stdout.flush()
        if not options.yes and not _agreed():
            sys.stderr.write("whisper-tui: Not trusted: calls that these entries would allow are asked about.\n")
            return REFUSED
        for changed in files:
            digest = entries_digest(changed.entries)
            supervisor.ask("trust_rules", path=changed.path, digest=digest, by=decider())
    sys.stdout.write("Trusted until a file changes\n")
    return DONE


def waiting_for_trust(home: "Directories") -> int:
    """How many allowing entries of the user's own files are not in force. 0 where no supervisor runs."""
    from whisper_tui.model.event import untrusted_entries

    try:
        with light_client(home, start=False) as supervisor:
            return sum(len(untrusted_entries(changed)) for changed in _known(supervisor))
    except WhisperError:
        return 0


def _known(supervisor: LightClient) -> "list[RulesChanged]":
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


LOOKED_AT = 500
"""Calls of the history that a new rule is tried on."""


def add_rules(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    parser = verbs.add("rules", "show and change the rules that decide without a human", _list)
    parser.set_defaults(json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = _action(actions, "list", "show the rules in force in the current directory, and disabled ones", _list)
    listing.add_argument("--json", action="store_true", help="print one array of objects")
    adding = _action(actions, "add", "add a rule; it applies at once", _add)
    _describe_rule(adding)
    trying = _action(actions, "try", f"show which of the last {LOOKED_AT} calls a rule would have decided", _try)
    _describe_rule(trying)
    removing = _action(actions, "remove", "remove all rules with a name from the rules file", _remove)
    removing.add_argument("name", metavar="NAME", help="as the list shows it")
    testing = _action(actions, "test", "test the examples of the rules", _test)
    testing.add_argument("file", nargs="?", metavar="FILE", help="a rules file (default: the rules in force)")
    carrying = _action(actions, "import", "import the rules of another program", _import)
    carrying.add_argument("file", metavar="FILE", help="a settings.json, a .rules file or a policy .toml")
    kinds = tuple(name for known in KNOWN.values() for name in known.rule_formats)
    carrying.add_argument("--from", dest="kind", choices=kinds, help="the program that they come from")
    carrying.add_argument("--write", action="store_true", help="add them to the rules file instead of showing them")
    sentence = "show what the rules of a project, or changes to your own, would allow, and trust that"
    trusting = _action(actions, "trust", sentence, trust)
    describe_trust(trusting)
    doubting = _action(actions, "untrust", "stop trusting a project's rules", untrust)
    doubting.add_argument("directory", metavar="DIR", help="the workspace")
    sentence = "offer rules for the project's own commands to test, build and lint it, and add those that you pick"
    starting = _action(actions, "starter", sentence, _starter)
    starting.add_argument("directory", nargs="?", default=os.curdir, metavar="DIR", help="the workspace")
    picking = starting.add_mutually_exclusive_group()
    picking.add_argument("--add", nargs="+", type=int, metavar="NUMBER", help="add these without asking")
    picking.add_argument("--all", action="store_true", help="add all of them without asking")
    _action(actions, "export", "print all rules in force as TOML", _export)


def _action(actions: Any, name: str, sentence: str, run: Run) -> argparse.ArgumentParser:
    parser = add_action(actions, name, sentence, run)
    add_host_option(parser, default=argparse.SUPPRESS)
    return parser


def _describe_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("effect", choices=("allow", "ask", "deny"), help="the effect of the rule")
    parser.add_argument("words", nargs="+", metavar="WORD", help="the first words of the commands, after --")
    parser.add_argument("--exact", action="store_true", help="exactly this text")
    parser.add_argument("--name", metavar="NAME", help="the name of the rule (default: its words)")
    parser.add_argument("--directory", metavar="DIR", help="only in this directory and below")
    parser.add_argument("--tool", metavar="NAME", help="only for calls of this tool")
    parser.add_argument(
        "--place",
        metavar="NAME",
        help="only for commands at this place, or `*` for all; allow needs --sandbox off there",
    )
    parser.add_argument(
        "--sandbox",
        choices=("read-only", "workspace", "off"),
        help="the sandbox of the commands that it allows (default: read-only)",
    )
    parser.add_argument("--network", action="store_true", help="let sandboxed commands reach other machines")
    parser.add_argument(
        "--execute", action="append", default=[], metavar="DIR", help="let sandboxed commands run programs in DIR, too"
    )
    parser.add_argument("--because", default="", metavar="TEXT", help="shown where the rule decides")


def _files(options: Options) -> "RuleFiles":
    from whisper_tui.config import load
    from whisper_tui.config.rule_files import RuleFiles

    home = home_of(options)
    return RuleFiles(home, load(home).rules)


def _list(options: Options) -> int:
    here = os.path.realpath(os.curdir)
    with reading_rules(options) as asked:
        rules = _listed(asked, here)
    hits = _hits(options)
    shown = rules.in_order()
    if options.json:
        print_json(
            [{"effect": rule.effect, **masked_json(rule.definition), "hits": _times(hits, rule.name)} for rule in shown]
        )
    else:
        lines = [_row(rule, _times(hits, rule.name)) for rule in shown]
        print_table(("EFFECT", "HITS", "NAME", "COMMANDS", "WHERE", "BECAUSE"), lines)
        runs = rules.read_only_runs and not any(project.asks_read_only for project in rules.projects)
        sys.stdout.write(f"Read-only commands {'run without approval' if runs else 'need approval like all others'}\n")
    unheard = sum(not rule.holds for project in rules.projects for rule in project.rules)
    if unheard:
        sys.stderr.write(
            f"whisper-tui: {unheard} of the project's rules allow, and are not in force: "
            f"whisper-tui rules trust {shlex.quote(here)} shows them\n"
        )
    waiting = waiting_for_trust(home_of(options))
    if waiting:
        sys.stderr.write(
            f"whisper-tui: {waiting} of these entries would allow something, and are not in force: "
            "whisper-tui rules trust shows them\n"
        )
    broken = [each for each in (rules.broken, *(project.broken for project in rules.projects)) if each]
    if broken:
        sys.stderr.write(f"whisper-tui: everything needs approval: {visible('; '.join(broken))}\n")
        return REFUSED
    return DONE


def _row(rule: "ShownRule", hits: int) -> tuple[str, ...]:
    from whisper_tui.policy.rules.grants import is_too_broad
    from whisper_tui.policy.rules.known_programs import says_too_little

    prefix = rule.definition["prefix"]
    wide = rule.effect == "allow" and prefix is not None and is_too_broad(tuple(prefix))
    short = (
        rule.effect == "allow" and prefix is not None and not rule.definition.get("options") and says_too_little(prefix)
    )
    note = "allows nearly anything" if wide else "needs a further word, or options" if short else rule.because
    name, subject = masked_line(rule.name), masked_line(rule.subject)
    effect = f"{rule.effect} (disabled)" if rule.disabled else rule.effect
    return effect, str(hits), name, subject, visible(rule.where), masked_line(note)


def _hits(options: Options) -> Counter[str]:
    """How many of the newest calls each rule has decided. Nothing where no supervisor runs."""

    try:
        with supervisor_of(options, start=False) as supervisor:
            rows = supervisor.ask("rows", kind="history", limit=LOOKED_AT)
    except Unavailable:
        return Counter()
    return Counter(row["rule"] for row in rows if row.get("rule"))


def _times(hits: Counter[str], name: str) -> int:
    """Several rules that decided together are told with commas between."""
    return sum(count for said, count in hits.items() if said == name or name in said.split(", "))


def _rule(options: Options) -> "Rule":
    from whisper_tui.model.call import HERE
    from whisper_tui.policy.rules.rule import EVERYWHERE, Rule

    words = tuple(options.words)
    text = " ".join(words)
    said: dict[str, Any] = {"text": text} if options.exact else {"prefix": words}
    directory = options.directory
    if directory and options.place in {None, HERE, EVERYWHERE}:
        directory = str(Path(directory).resolve())
    return Rule(
        name=options.name or text,
        directory=directory,
        tool=options.tool,
        place=options.place,
        sandbox=False if options.sandbox == "off" else options.sandbox,
        network=options.network,
        execute=tuple(str(Path(path).resolve()) for path in options.execute),
        justification=options.because,
        **said,
    )


def _add(options: Options) -> int:
    rule = _rule(options)
    with changing_rules("rules add", options) as asked:
        _ask_to_add(asked, options.effect, rule)
        path = _listed(asked).path
    sys.stdout.write(f"Added to {path}: {options.effect} {visible(rule.subject())}\n")
    return DONE


def _ask_to_add(asked: "LightClient | RuleFilesAlone", effect: str, rule: "Rule") -> None:
    asked.ask("add_rule", effect=effect, definition=rule.model_dump(mode="json", exclude_defaults=True), by=decider())


def _starter(options: Options) -> int:
    from whisper_tui.cli.client_rules import outside_of_system
    from whisper_tui.model.errors import InvalidRequest
    from whisper_tui.policy.rules.rule import Rule

    root = os.path.realpath(options.directory)
    with reading_rules(options) as asked:
        offered = [rule for each in _listed(asked, root).starters for rule in each.rules]
    if not offered:
        sys.stdout.write(
            f"No rules to offer for {visible(root)}: package.json, Makefile, pyproject.toml and Cargo.toml there name "
            "no tests, builds or checks without a rule\n"
        )
        return DONE
    found = [Rule.model_validate(each.definition) for each in offered]
    lines = [
        (str(at), visible(each.subject), each.sandbox, visible(each.because)) for at, each in enumerate(offered, 1)
    ]
    print_table(("NUMBER", "COMMANDS", "SANDBOX", "BECAUSE"), lines)
    sys.stdout.flush()
    picked = list(range(1, len(offered) + 1)) if options.all else options.add
    picked = _picked() if picked is None else picked
    if wrong := [number for number in picked if not 0 < number <= len(offered)]:
        raise InvalidRequest(f"there is no rule {wrong[0]} in this list", hint=f"Name numbers from 1 to {len(offered)}")
    if not picked:
        sys.stdout.write("None added. Add some with --add NUMBER…, or --all\n")
        return DONE
    with changing_rules("rules starter", options) as asked:
        added = [found[number - 1] for number in dict.fromkeys(picked)]
        for rule in added:
            _ask_to_add(asked, "allow", rule)
        path = _listed(asked).path
    sys.stdout.write(f"Added {len(added)} to {path}\n")
    for sentence in outside_of_system(added):
        sys.stderr.write(f"whisper-tui: may fail: {visible(sentence)}\n")
    return DONE


def _picked() -> list[int]:
    """Return the numbers that the user types; none where nobody can be asked."""
    from whisper_tui.model.errors import InvalidRequest

    if not sys.stdin.isatty():
        return []
    sys.stdout.write("Add which? Numbers with blanks between, or Enter for none: ")
    sys.stdout.flush()
    words = sys.stdin.readline().replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise InvalidRequest(f"{' '.join(words)!r} are no numbers", hint="Type those in the first column, like 1 3")
    return [int(word) for word in words]


def _try(options: Options) -> int:
    from whisper_tui.policy.rules.rules_toml import matched

    with supervisor_of(options) as supervisor:
        rows = supervisor.ask("rows", kind="history", limit=LOOKED_AT, unmasked=True)
    texts = [row["command"] for row in rows if isinstance(row["command"], str)]
    found = matched(options.effect, _rule(options), texts)
    sys.stdout.writelines(f"{masked_line(text)}\n" for text in dict.fromkeys(found))
    sys.stdout.write(f"It would have decided {len(found)} of the last {len(texts)} calls for a shell\n")
    return DONE


def _remove(options: Options) -> int:
    with changing_rules("rules remove", options) as asked:
        gone = asked.ask("remove_rule", name=options.name, by=decider())
        path = _listed(asked).path
    sys.stdout.write(f"Removed {gone} rule{'s' if gone > 1 else ''} from {path}\n")
    return DONE


def _test(options: Options) -> int:
    from whisper_tui.config.rule_files import rules_in
    from whisper_tui.policy.rules.rule import by_effect
    from whisper_tui.policy.rules.rules_toml import failed_examples

    rules = rules_in(Path(options.file)) if options.file else _files(options).current()
    tried = failed = 0
    for effect, rule in by_effect(rules):
        tried += len(rule.match) + len(rule.not_match)
        for failure in failed_examples(effect, rule):
            failed += 1
            sys.stdout.write(f"{effect} {visible(rule.name)}: {visible(failure)}\n")
    sys.stdout.write(f"{tried - failed} of {tried} examples hold\n")
    if rules.broken:
        sys.stderr.write(f"whisper-tui: {visible(rules.broken)}\n")
    return REFUSED if failed or rules.broken else DONE


def _import(options: Options) -> int:
    from whisper_tui.cli.client_rules import import_rules, outside_of_system
    from whisper_tui.model.errors import InvalidRequest
    from whisper_tui.policy.rules.rules_toml import rule_text

    try:
        carried = import_rules(options.file, Path(options.file).read_text("utf-8"), options.kind)
    except ValueError as error:
        raise InvalidRequest(f"{options.file} cannot be imported: {error}", hint="See docs/policy.md") from error
    if options.write:
        with changing_rules("rules import", options) as asked:
            for effect, rule in carried.rules:
                _ask_to_add(asked, effect, rule)
            path = _listed(asked).path
        sys.stdout.write(f"Added {len(carried.rules)} rules to {path}\n")
    else:
        sys.stdout.write("\n".join(rule_text(effect, rule) for effect, rule in carried.rules))
    for sentence in carried.left:
        sys.stderr.write(f"whisper-tui: not imported: {visible(sentence)}\n")
    for sentence in (*carried.failing, *outside_of_system(carried.of("allow"))):
        sys.stderr.write(f"whisper-tui: may fail: {visible(sentence)}\n")
    return DONE


def _export(options: Options) -> int:
    from whisper_tui.policy.rules.rules_toml import rules_text

    sys.stdout.write(rules_text(_files(options).current()))
    return DONE
