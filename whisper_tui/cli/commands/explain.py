"""`explain`, also called `check`: the verdict for a command, and its reasons, without running it."""

import json
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, Options, Subcommands, home_of, supervisor_of
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.model.text import visible
from whisper_tui.present.column_words import risk_sign

if TYPE_CHECKING:
    from whisper_tui.model.shown_rules import Judgement
    from whisper_tui.policy.rules.rule import Rules


def add_explain(verbs: Subcommands) -> None:
    """Declare the subcommand under both of its names."""
    for name in ("explain", "check"):
        _add(verbs, name)


def _add(verbs: Subcommands, name: str) -> None:
    parser = verbs.add(
        name,
        "show how the policy would decide about a command, and why, without running it",
        _check,
        details="Write the command after --, as one text for bash or word by word. It is judged for a session whose "
        "workspace is the current directory. Its programs and options follow in plain words, as far as they are known. "
        "--jsonl reads questions from standard input instead, one JSON object a "
        "line: id, kind (decision, split, substitution, redirect, wrapper, danger or safe), command and rules; it "
        "answers each with id and result.",
        examples=(
            f"{name} 'make test && git push'",
            f"{name} -- rm -rf build",
        ),
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one object")
    form.add_argument("--jsonl", action="store_true", help="answer the questions of standard input")
    parser.add_argument("--rules", metavar="FILE", help="judge by the rules of this file alone")
    parser.add_argument("--place", default="", metavar="NAME", help="judge it as it would run at this place")
    parser.add_argument("--tool", default="", metavar="NAME", help="judge as a call of this tool")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command")


def _check(options: Options) -> int:
    if options.jsonl:
        return _answer_lines()
    if not options.command:
        raise InvalidRequest("there is no command to check", hint="Write it after --")
    row = _judged(options)
    if options.json:
        print_json(row)
    else:
        sys.stdout.write("\n".join(_lines(row)) + "\n")
    return DONE


def _judged(options: Options) -> dict[str, Any]:
    from whisper_tui.model.call import Shell
    from whisper_tui.model.verdict import is_grave
    from whisper_tui.policy.view import view
    from whisper_tui.present.explained_words import explain_command

    text = options.command[0] if len(options.command) == 1 else " ".join(options.command)
    judgement = _judgement(options, text, os.path.realpath(Path.cwd()))
    verdict, resolved = judgement.verdict, judgement.resolved
    seen = view(Shell(text=text))
    return {
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "rule": verdict.rule,
        "place": judgement.place,
        "command": text,
        "plain": seen.plain is not None,
        "not_plain_because": seen.doubt or None,
        "risks": [{**risk.model_dump(), "grave": is_grave(risk)} for risk in verdict.risks],
        "runs": [
            {"argv": list(inner.argv), "through": list(inner.via), "unknown": inner.opaque} for inner in seen.commands
        ],
        "resolved": resolved.model_dump(),
        "prefixes": [list(prefix) for prefix in verdict.prefixes],
        "explained": [each._asdict() for each in explain_command(Shell(text=text), resolved)],
    }


def _judgement(options: Options, text: str, cwd: str) -> "Judgement":
    """The verdict of the supervisor; without one, or by the rules of another file, that of the policy here."""
    from whisper_tui.model.shown_rules import Judgement

    if options.place:
        if options.rules is not None:
            raise InvalidRequest("only the supervisor can ask a place", hint="Leave out --rules, or --place")
        with supervisor_of(options, start=False) as supervisor:
            asked = supervisor.ask("judge_command", text=text, directory=cwd, tool=options.tool, place=options.place)
            return Judgement.model_validate(asked)
    if options.rules is None:
        with suppress(Unavailable), supervisor_of(options, start=False) as supervisor:
            asked = supervisor.ask("judge_command", text=text, directory=cwd, tool=options.tool)
            return Judgement.model_validate(asked)
    return _judged_here(options, text, cwd)


def _judged_here(options: Options, text: str, cwd: str) -> "Judgement":
    """The verdict of the policy in this process."""
    # What looks at commands and judges them takes as long to load as all else of this program.
    from whisper_tui.model.call import CommandSpec, Shell
    from whisper_tui.model.shown_rules import Judgement
    from whisper_tui.policy.rules.matching import place_of_unsubmitted
    from whisper_tui.supervisor.approvals.judge import judge_alone, unknown_there

    rules, own, now = rules_of(options), [str(directory) for directory in home_of(options)], time.time()
    spec = CommandSpec(command=Shell(text=text), cwd=cwd)
    place = place_of_unsubmitted(spec, rules, options.tool, now)
    spec = spec.model_copy(update={"place": place})
    examined = partial(unknown_there, f"only the supervisor can ask {place}") if place else None
    verdict, resolved = judge_alone(
        spec, rules, os.environ, root=cwd, tool=options.tool, own=own, now=now, examined=examined
    )
    return Judgement(verdict=verdict, resolved=resolved, place=place)


def rules_of(options: Options) -> "Rules":
    """The rules to judge by: those of `--rules`, or those of the instance. Raises `BadConfiguration`."""
    from whisper_tui.config import load
    from whisper_tui.config.rule_files import RuleFiles, rules_in

    if options.rules is not None:
        return rules_in(Path(options.rules))
    home = home_of(options)
    return RuleFiles(home, load(home).rules).current(os.path.realpath(Path.cwd()))


def _lines(row: dict[str, Any]) -> list[str]:
    from whisper_tui.model.verdict import READ_ONLY_RULE

    lines = [f"{row['verdict']}: {visible(row['reason'])}"]
    said = lines[0]
    if row["rule"]:
        rule = "the built-in read-only list" if row["rule"] == READ_ONLY_RULE else visible(row["rule"])
        lines.append(f"  by      {rule}")
    if row["place"]:
        lines.append(f"  at      {visible(row['place'])}")
    for risk in row["risks"]:
        sentence, place = visible(risk["sentence"]), _place(row["command"], risk["span"])
        where = f" [{place}]" if place not in sentence else ""
        lines.append(f"  risk    {risk_sign(risk['id'], grave=risk['grave'])} {risk['id']}: {sentence}{where}")
    for code in row["resolved"]["code"]:
        if code["not_inspected"]:
            lines.append(f"  unread  {visible(code['name'])}: not read, {visible(code['not_inspected'])}")
    for inner in row["runs"]:
        words = " ".join("…" if word is None else word for word in inner["argv"])
        if words == row["command"] and not inner["unknown"]:
            continue
        through = f", through {' and '.join(inner['through'])}" if inner["through"] else ""
        unknown = f" ({inner['unknown']})" if inner["unknown"] else ""
        lines.append(f"  runs    {visible(words)}{visible(through)}{visible(unknown)}")
    if not row["plain"] and row["not_plain_because"] and visible(row["not_plain_because"]) not in said:
        lines.append(f"  plain   no: {visible(row['not_plain_because'])}")
    lines += [f"  offers  {visible(' '.join(prefix))} …" for prefix in row["prefixes"]]
    return [*lines, *_explained(row["explained"])]


def _explained(explained: list[dict[str, Any]]) -> list[str]:
    from whisper_tui.present.explained_words import Explanation, explained_rows

    rows = explained_rows([Explanation(**each) for each in explained])
    lines = [f"  {'' if is_program else '  '}{words}: {meaning}" for words, meaning, is_program in rows]
    return ["in plain words", *lines] if rows else []


def _place(text: str, span: list[int] | None) -> str:
    return visible(text[span[0] : span[1]]) if span else ""


def _answer_lines() -> int:
    """One answer for each line; a line that cannot be answered gets an error, and the next one its turn."""
    from whisper_tui.policy.corpus import judge_case

    for line in sys.stdin:
        if not line.strip():
            continue
        answer: dict[str, Any] = {"id": None}
        try:
            case = json.loads(line)
            answer["id"] = case.get("id")
            options = {"tags": case.get("tags") or (case.get("options") or {}).get("tags") or []}
            answer["result"] = judge_case(case["kind"], case["command"], case.get("rules"), options)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        print_json(answer, indent=None)
    return DONE
