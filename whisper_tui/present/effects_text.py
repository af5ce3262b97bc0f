"""The effects of a command in words, one short line each.

The effects are plain JSON, so that subcommands can print them without loading the models.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from whisper_tui.present.quantities import count, size

EffectKind = Literal["file", "removal", "git", "host", "code", "secret", "unknown"]

FEW = 5
"""How many names a line lists before it counts the others."""


MOVED = "all that is moved"
"""The detail of a renamed directory."""


class EffectLine(NamedTuple):
    """One line about one effect."""

    text: str
    kind: EffectKind
    grave: bool = False
    """True if it cannot be undone, or reaches beyond the workspace."""


Facts = Mapping[str, Any]


def effect_lines(effects: Facts) -> tuple[EffectLine, ...]:
    """Return lines for all effects, beginning with losses and ending with unknown effects.

    Code may have `told`: those of its risks that stand elsewhere on the screen.
    """
    directory = effects["directory"]
    return (
        *(_by_whom(each, _removal(each, directory)) for each in effects["removals"]),
        *(_by_whom(each, _file(each, directory)) for each in effects["files"]),
        *(_by_whom(each, _git(each, with_state=not number)) for number, each in enumerate(effects["git"])),
        *(_by_whom(each, _host(each)) for each in effects["hosts"]),
        *(_by_whom(each, _code(each)) for each in effects["code"]),
        *_secrets(effects),
        *_unknown(effects),
    )


def no_effects_text(effects: Facts) -> str:
    """Return the sentence for a command without known effects. Empty: it has effects."""
    return "" if effect_lines(effects) else "no known changes"


def _by_whom(each: Facts, line: EffectLine) -> EffectLine:
    """The line, with the script that brings the effect about."""
    script = each.get("script")  # An older supervisor looks into no script.
    # Why code of a script is not read may name that script.
    return line._replace(text=f"{script}: {line.text}") if script and not line.text.endswith(script) else line


def name_below(path: str, directory: str) -> str:
    """Return a path relative to the working directory if that is shorter."""
    base = directory.rstrip("/") + "/"
    return path[len(base) :] if path.startswith(base) and len(path) > len(base) else path


def _file(each: Facts, directory: str) -> EffectLine:
    action, name = each["action"], name_below(each["path"], directory)
    if action == "fills" and each["detail"] == MOVED:
        text = f"writes {name} and all below it"
    elif action == "moves":
        text = f"moves {name} to {name_below(each['detail'], directory)}"
    elif action == "links":
        text = f"links {name} to {each['detail']}"
    elif action in {"changes mode of", "changes owner of"}:
        below = " and all below it" if each["below"] else ""
        text = f"{action} {name}{below}" + (f" to {each['detail']}" if each["detail"] else "")
    elif action == "fills":
        text = f"writes files below {name}" + (f", {each['detail']}" if each["detail"] else "")
    else:
        text = f"{action} {name}"
    notes = ", ".join(_notes(each, directory))
    text += f" ({notes})" if notes else ""
    text += f", if {each['only_if']}" if each["only_if"] else ""
    return EffectLine(text, "file", each["outside"])


def _notes(each: Facts, directory: str) -> Iterator[str]:
    content = each["action"] in {"writes", "appends to", "edits", "touches"}
    if each["action"] == "links" and each["before"] == "file":
        yield "replaces a file"
    if each["before"] == "absent" and each["action"] not in {"makes directory", "links"}:
        yield "new"
    elif each["before"] == "file" and content:
        yield "exists" if each["size"] is None else f"exists, {size(each['size'])}"
    elif each["before"] == "special":
        yield "no regular file"
    if each["diff"] is not None and (each["diff"]["added"] or each["diff"]["removed"]):
        yield f"+{each['diff']['added']:,} -{each['diff']['removed']:,} lines"
    elif each["diff"] is not None and each["before"] == "file" and content:
        yield "same content"
    elif each["no_diff"] and content and each["before"] == "file":
        yield each["no_diff"] if each["no_diff"] == "not computed" else f"no diff: {each['no_diff']}"
    if each["through_link"]:
        yield f"really {name_below(each['real'], directory)}"
    if each["outside"]:
        yield "outside the workspace"


def _removal(each: Facts, directory: str) -> EffectLine:
    named = _listed([name_below(path, directory) for path in each["paths"]])
    absent = _listed([name_below(path, directory) for path in each["missing"]])
    if not named:
        return EffectLine(
            f"deletes nothing: {absent} {'do' if len(each['missing']) > 1 else 'does'} not exist", "removal"
        )
    more = "" if each["complete"] else "more than "
    alone = each["files"] == 1 and len(each["paths"]) == 1 and each["complete"]
    amount = size(each["bytes"]) if alone else f"{more}{count(each['files'], 'file')}, {size(each['bytes'])}"
    parts = [f"{each[name]:,} {words}" for name, words in GIT_KNOWS if each[name]]
    parts += [each["no_git"]] if each["no_git"] else []
    text = f"deletes {named} ({amount})" + (f": {', '.join(parts)}" if parts else "")
    text += ", outside the workspace" if each["outside"] else ""
    text += f"; {absent} not found" if absent else ""
    return EffectLine(text, "removal", each["outside"] or each["restorable"] != each["files"])


GIT_KNOWS = (
    ("restorable", "restorable from git"),
    ("modified", "modified since git last saw it"),
    ("untracked", "untracked"),
    ("ignored", "ignored"),
)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:FEW])
    return f"{shown} and {len(names) - FEW:,} more" if len(names) > FEW else shown


def _git(each: Facts, *, with_state: bool) -> EffectLine:
    verb, _, option = each["subcommand"].partition(" ")
    target = f" {each['target']}" if each["target"] else ""
    if verb == "push":
        number = "" if each["commits"] is None else f" {count(each['commits'], 'commit')}"
        of = f" of{target}" if number and target else target
        forced = option in {"-f", "--force", "--force-with-lease"}
        text = f"{'force-pushes' if forced else 'pushes'}{number}{of} to {each['remote'] or 'a remote'}"
    elif verb in {"checkout", "switch"} and option in {"-b", "--orphan"}:
        text = f"creates branch{target}, and switches to it"
    elif verb == "branch" and option in {"-D", "-d", "--delete"}:
        text = f"deletes branch{target}"
    else:
        text = f"git {each['subcommand']}{target}"
        text += f" from {each['remote']}" if each["remote"] else ""
    text += f" ({each['host']})" if each["host"] else ""
    drops = len(each["drops"]) + each["more_drops"]
    kept = verb in {"rebase", "commit"}
    if drops:
        commits = [f'{commit["id"]} "{commit["subject"]}"' for commit in each["drops"]]
        more = each["more_drops"] + max(0, len(commits) - FEW)
        listed = ", ".join(commits[:FEW]) + (f" and {more:,} more" if more else "")
        text += f", {'rewrites' if kept else 'drops'} {count(drops, 'commit')}: {listed}"
    loses = each.get("loses", ())  # An older supervisor does not tell.
    if loses:
        lines = sum(lost["diff"]["removed"] for lost in loses)
        text += f", loses {count(lines, 'line')} of {_listed([lost['path'] for lost in loses])}"
    text += f" ({each['unknown']})" if each["unknown"] else ""
    if with_state:
        text += _state(each)
    return EffectLine(text, "git", bool(loses) or (bool(drops) and not kept))


def _state(each: Facts) -> str:
    """Return the branch and the uncommitted changes of a repository."""
    branch = f"on {each['branch']}" if each["branch"] else ""
    changed = f"{count(each['changed'], 'uncommitted change')}" if each["changed"] else ""
    facts = ", ".join(filter(None, (branch, changed)))
    return f" [{facts}]" if facts else ""


def _host(each: Facts) -> EffectLine:
    where = each["host"] or "an unknown machine"
    source = f", {each['source']}" if each["source"] else ""
    here = "" if each["elsewhere"] else ", this machine"
    return EffectLine(f"talks to {where} ({each['program']}{source}{here})", "host")


def _code(each: Facts) -> EffectLine:
    file = each["path"].rsplit("/", 1)[-1] if each["path"] else ""
    path = f" ({file})" if file and file not in each["name"] else ""
    found, risks = _risks(each), each["risks"]
    if each["inspected"]:
        said = found or ("" if risks else "inspected, no risk known")
    else:
        said = "not read" + (f", {each['not_inspected']}" if each["not_inspected"] else "")
        said += f"; {found}" if found else ""
    since, changed = each.get("since"), bool(each.get("changed"))
    if changed:
        amount = f" (+{since['added']:,} -{since['removed']:,} lines)" if since else ""
        said += f"; changed since call {each['approved_in']} was approved{amount}"
    elif each.get("approved_in"):
        said += f"; unchanged since call {each['approved_in']} was approved"
    grave = bool(risks) or not each["inspected"] or changed
    said = said.removeprefix("; ")
    return EffectLine(f"runs {each['name']}{path}{f': {said}' if said else ''}", "code", grave)


def _risks(each: Facts) -> str:
    """Return the risks of code that do not stand elsewhere, as a clause."""
    told = each.get("told", ())
    risks = [_risk(risk) for risk in each["risks"] if risk not in told]
    if not risks:
        return ""
    more = f"; {len(risks) - 3} more" if len(risks) > 3 else ""
    return f"{count(len(risks), 'risk')}: {'; '.join(risks[:3])}{more}"


def _risk(risk: Facts) -> str:
    line = risk.get("line")
    return f"line {line:,}: {risk['sentence']}" if line else str(risk["sentence"])


def _secrets(effects: Facts) -> Iterator[EffectLine]:
    if effects["secret_files"]:
        yield EffectLine(f"names files with secrets: {_listed(list(effects['secret_files']))}", "secret", True)
    named = list(effects.get("named_secrets", ()))  # An older supervisor does not tell.
    if named:
        yield EffectLine(f"uses {count(len(named), 'secret variable')}: {_listed(named)}", "secret")
    if shown := list(effects.get("shown_secrets", ())):
        yield EffectLine(f"its output goes to the model and may show secrets: {_listed(shown)}", "secret", True)
    variables = [name for name in effects["secret_variables"] if name not in named]
    if variables and _reaches_secrets(effects):
        yield EffectLine(f"gets {count(len(variables), 'secret variable')}: {_listed(variables)}", "secret")


def _reaches_secrets(effects: Facts) -> bool:
    """True if the environment matters: code that nobody knows in full gets it, or it may be shown or sent."""
    unknown = any(each["about"] == "everything" for each in effects["unknown"])
    sends = any(each["elsewhere"] for each in effects["hosts"])
    return bool(effects["code"]) or unknown or sends or bool(effects.get("shown_secrets"))


def _unknown(effects: Facts) -> Iterator[EffectLine]:
    for each in effects["unknown"]:
        command = f" ({each['command']})" if each["command"] else ""
        yield _by_whom(each, EffectLine(f"unknown: {each['reason']}{command}", "unknown"))
    if not effects["complete"]:
        yield EffectLine("unknown: the time limit was reached before everything was read", "unknown")
