"""`rules`: the rules that decide without a human, listed, changed, tried, carried over and written out."""

import argparse
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.asking import asking
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.outside import announce_to, check_outside
from whisper_tui.cli.parsing import Options, Run, Verbs, add_places, home_of
from whisper_tui.cli.table import print_table
from whisper_tui.cli.trusting import describe_trust, trust, untrust, waiting_for_trust
from whisper_tui.cli.words import masked_line
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.masking import masked_json
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.config.rule_files import RuleFiles
    from whisper_tui.policy.rules import Rule

LOOKED_AT = 500
"""Calls of the history that a new rule is tried on."""


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    parser = verbs.add("rules", "show and change the rules that decide without a human", _list)
    parser.set_defaults(json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = _action(actions, "list", "show all rules that hold for the current directory", _list)
    listing.add_argument("--json", action="store_true", help="print one array of objects")
    adding = _action(actions, "add", "add a rule; it holds at once", _add)
    _describe_rule(adding)
    trying = _action(actions, "try", f"show which of the last {LOOKED_AT} calls a rule would have decided", _try)
    _describe_rule(trying)
    removing = _action(actions, "remove", "take the rules of a name out of the rules file", _remove)
    removing.add_argument("name", metavar="NAME", help="as the list shows it")
    testing = _action(actions, "test", "try the examples that rules carry", _test)
    testing.add_argument("file", nargs="?", metavar="FILE", help="a rules file. Without one: the rules that hold")
    carrying = _action(actions, "import", "carry over the rules of another program", _import)
    carrying.add_argument("file", metavar="FILE", help="a settings.json, a .rules file or a policy .toml")
    kinds = ("claude", "codex", "gemini", "lists")
    carrying.add_argument("--from", dest="kind", choices=kinds, help="whose rules they are")
    carrying.add_argument("--write", action="store_true", help="add them to the rules file instead of showing them")
    sentence = "show what rules of a project, or your own that somebody changed, would allow, and let that hold"
    trusting = _action(actions, "trust", sentence, trust)
    describe_trust(trusting)
    doubting = _action(actions, "untrust", "take back the trust in a project's rules", untrust)
    doubting.add_argument("directory", metavar="DIR", help="the workspace")
    _action(actions, "export", "print all rules that hold as TOML", _export)


def _action(actions: Any, name: str, sentence: str, run: Run) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=sentence, description=f"{sentence[:1].upper()}{sentence[1:]}."
    )
    add_places(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def _describe_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("effect", choices=("allow", "ask", "deny"), help="what the rule does")
    parser.add_argument("words", nargs="+", metavar="WORD", help="the beginning of the commands, behind --")
    parser.add_argument("--exact", action="store_true", help="only this text, to the letter")
    parser.add_argument("--name", metavar="NAME", help="how the rule is called. Without one: by its words")
    parser.add_argument("--directory", metavar="DIR", help="only in this directory and below")
    parser.add_argument("--tool", metavar="NAME", help="only for calls of this tool")
    parser.add_argument(
        "--sandbox",
        choices=("read-only", "workspace", "off"),
        help="how what it allows is confined. Without one: read-only",
    )
    parser.add_argument("--network", action="store_true", help="in the sandbox, it may reach other machines")
    parser.add_argument(
        "--execute", action="append", default=[], metavar="DIR", help="in the sandbox, it may run programs of this, too"
    )
    parser.add_argument("--because", default="", metavar="TEXT", help="shown where the rule decides")


def _files(options: Options) -> "RuleFiles":
    from whisper_tui.config import load
    from whisper_tui.config.rule_files import RuleFiles

    home = home_of(options)
    return RuleFiles(home, load(home).rules, announce_to(home))


def _list(options: Options) -> int:
    from whisper_tui.policy.banned import is_banned
    from whisper_tui.policy.examples import by_effect

    files, here = _files(options), os.path.realpath(os.curdir)
    rules = files.current(here)
    hits = _hits(options)
    rows = [
        {"effect": effect, **masked_json(rule.model_dump(mode="json")), "hits": _times(hits, rule.name)}
        for effect, rule in by_effect(rules)
    ]
    if options.json:
        print_json(rows)
    else:
        lines = []
        for effect, rule in by_effect(rules):
            wide = effect == "allow" and rule.prefix is not None and is_banned(rule.prefix)
            note = "allows nearly anything" if wide else rule.justification
            times = str(_times(hits, rule.name))
            name, subject = masked_line(rule.name), masked_line(rule.subject())
            lines.append((effect, times, name, subject, _where(rule), masked_line(note)))
        print_table(("EFFECT", "HITS", "NAME", "COMMANDS", "WHERE", "BECAUSE"), lines)
        looking = "run without being asked" if rules.read_only else "are asked like all others"
        sys.stdout.write(f"Commands that only look {looking}\n")
    unheard = files.project.unheard(here)
    if unheard:
        sys.stderr.write(
            f"whisper-tui: {unheard} of the project's rules allow, and do not hold: "
            f"whisper-tui rules trust {shlex.quote(here)} shows them\n"
        )
    waiting = waiting_for_trust(home_of(options))
    if waiting:
        sys.stderr.write(
            f"whisper-tui: {waiting} of these entries would allow something, and do not hold: whisper-tui rules trust"
            " shows them\n"
        )
    if rules.broken:
        sys.stderr.write(f"whisper-tui: everything is asked: {visible(rules.broken)}\n")
        return REFUSED
    return DONE


def _hits(options: Options) -> Counter[str]:
    """How many of the newest calls each rule has decided. Nothing where no supervisor runs."""

    try:
        with asking(options, start=False) as supervisor:
            rows = supervisor.ask("rows", kind="history", limit=LOOKED_AT)
    except Unavailable:
        return Counter()
    return Counter(row["rule"] for row in rows if row.get("rule"))


def _times(hits: Counter[str], name: str) -> int:
    """Several rules that decided together are told with commas between."""
    return sum(count for said, count in hits.items() if said == name or name in said.split(", "))


def _where(rule: "Rule") -> str:
    parts = [rule.directory or "", f"tool {rule.tool}" if rule.tool else "", " ".join(rule.trust)]
    return visible(", ".join(part for part in parts if part)) or "everywhere"


def _rule(options: Options) -> "Rule":
    from whisper_tui.policy.rules import Rule

    words = tuple(options.words)
    text = " ".join(words)
    said: dict[str, Any] = {"text": text} if options.exact else {"prefix": words}
    directory = str(Path(options.directory).resolve()) if options.directory else None
    return Rule(
        name=options.name or text,
        directory=directory,
        tool=options.tool,
        sandbox=False if options.sandbox == "off" else options.sandbox,
        network=options.network,
        execute=tuple(str(Path(path).resolve()) for path in options.execute),
        justification=options.because,
        **said,
    )


def _add(options: Options) -> int:
    check_outside("rules add", home_of(options))
    rule = _rule(options)
    files = _files(options)
    files.add(options.effect, rule)
    sys.stdout.write(f"Added to {files.path}: {options.effect} {visible(rule.subject())}\n")
    return DONE


def _try(options: Options) -> int:
    from whisper_tui.policy.examples import matched

    with asking(options) as supervisor:
        rows = supervisor.ask("rows", kind="history", limit=LOOKED_AT, unmasked=True)
    texts = [row["command"] for row in rows if isinstance(row["command"], str)]
    found = matched(options.effect, _rule(options), texts)
    sys.stdout.writelines(f"{masked_line(text)}\n" for text in dict.fromkeys(found))
    sys.stdout.write(f"It would have decided {len(found)} of the last {len(texts)} calls for a shell\n")
    return DONE


def _remove(options: Options) -> int:
    check_outside("rules remove", home_of(options))
    files = _files(options)
    gone = files.remove(options.name)
    sys.stdout.write(f"Removed {gone} rule{'s' if gone > 1 else ''} from {files.path}\n")
    return DONE


def _test(options: Options) -> int:
    from whisper_tui.config.rule_files import rules_in
    from whisper_tui.policy.examples import by_effect, failed_examples

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
    from whisper_tui.model.errors import InvalidRequest
    from whisper_tui.policy.imports.recognise import import_rules
    from whisper_tui.policy.rules_file import rule_text

    try:
        carried = import_rules(options.file, Path(options.file).read_text("utf-8"), options.kind)
    except ValueError as error:
        raise InvalidRequest(f"{options.file} cannot be carried over: {error}", hint="See docs/policy.md") from error
    if options.write:
        check_outside("rules import", home_of(options))
        files = _files(options)
        for effect, rule in carried.rules:
            files.add(effect, rule)
        sys.stdout.write(f"Added {len(carried.rules)} rules to {files.path}\n")
    else:
        sys.stdout.write("\n".join(rule_text(effect, rule) for effect, rule in carried.rules))
    for sentence in carried.left:
        sys.stderr.write(f"whisper-tui: not carried over: {visible(sentence)}\n")
    return DONE


def _export(options: Options) -> int:
    from whisper_tui.policy.rules_file import rules_text

    sys.stdout.write(rules_text(_files(options).current()))
    return DONE
