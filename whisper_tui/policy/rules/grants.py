"""Standing approvals: their validity and scope, suggested prefixes, and those that are too broad."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from posixpath import commonpath
from typing import Any

from whisper_tui.model.call import CarriedOut, Command, CommandSpec, EditedFile, FileEdits, Function
from whisper_tui.model.decision import ExactScope, Grant, PrefixScope, RuleScope, Scope, ToolScope
from whisper_tui.model.run import Sandbox
from whisper_tui.model.shown_rules import SAVED_WITH
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.commands.wrappers import BUILTINS, StandardInput, adds_variables, wrapper_of
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.risks.command_dangers import dangers_of_argv, dangers_of_program
from whisper_tui.policy.rules.matching import DEEPEST, commands_inside
from whisper_tui.policy.rules.rule import (
    WEB,
    Rule,
    host_matches,
    host_problem,
    literal_pattern,
    path_problem,
    server_pattern,
    tool_names,
)
from whisper_tui.policy.rules.set_variables import (
    behind_env,
    may_be_offered,
    rest_of,
    to_be_named,
    with_variables,
)
from whisper_tui.policy.shell.strict_reader import PlainCommand
from whisper_tui.policy.view import view
from whisper_tui.programs.entries import entry_of

_MODULE_SWITCHES = frozenset({"-", "-c", "-m", "-e", "-E", "-r", "-p", "-i", "-s", "-x", "-n"})


def is_too_broad(prefix: Sequence[str]) -> bool:
    """True if an allow rule with this prefix would allow nearly anything."""
    words = [word for word in prefix if word]
    # variables before the command do not make a prefix narrower
    words = list(rest_of(words))
    if not words:
        return True
    name = program_name(words[0])
    entry, rest = entry_of(name), words[1:]
    if entry.shell == "posix" or name in {"pwsh", "powershell", "cmd", "wsl"}:
        return all(word.startswith(("-", "/")) for word in rest) or "c" in rest[0]
    if name != "time" and wrapper_of(name) is not None:
        return True
    if is_interpreter(name) and (all(word.startswith("-") for word in rest) or rest[0] in _MODULE_SWITCHES | {"eval"}):
        return True
    behind = unwrap(tuple(words), StandardInput())
    if behind is not None and behind.runner is not None and behind.commands:
        # `uv run pytest` is as narrow as `pytest` is
        return is_too_broad([word or "" for word in behind.commands[0]])
    if entry.says_little and not [word for word in rest if not word.startswith("-")] and entry.name != "sed":
        return not _names_harmless_option(rest)
    if name in {"source", ".", "eval", "exec", "npx", "bunx", "uvx", "pnpx"} and not rest:
        return True
    if rest and rest[0] in entry.run_words and (len(rest) == 1 or (len(rest) == 2 and rest[1].startswith("-"))):
        return True
    return _only_begins_danger(words, name)


def _names_harmless_option(rest: Sequence[str]) -> bool:
    return len(rest) == 1 and rest[0] in {"--version", "--help", "-V"}


def _only_begins_danger(words: Sequence[str], name: str) -> bool:
    """True if the last word is dangerous and its value would follow the prefix."""
    found = dangers_of_program(words, name)
    return any(danger.word == len(words) - 1 and danger.id == "runs-other-code" for danger in found)


PREFIX_OF_GRANT = "approval "
"""Prefix of the names of rules that stand for standing approvals."""


def grant_holds(grant: Grant, session_id: str, now: float) -> bool:
    """True if an approval is valid in this session now."""
    if grant.session_id != session_id or grant_is_over(grant, now):
        return False
    # a clock that was set back would extend the approval, so one from the future does not hold
    return grant.until is None or grant.granted_at <= now


def grant_is_over(grant: Grant, now: float) -> bool:
    """True if an approval was revoked, used up, or has expired."""
    limit = grant.scope.uses if isinstance(grant.scope, ExactScope | PrefixScope | ToolScope) else None
    used_up = limit is not None and grant.uses >= limit
    return used_up or grant.revoked_at is not None or (grant.until is not None and now >= grant.until)


def same_files(grant: Grant, resolved: Resolved) -> bool:
    """True if the scripts of the workspace are unchanged since the approval (decision 11)."""
    return all(resolved.contents.get(path) == content for path, content in grant.files.items())


def is_exact(grant: Grant) -> bool:
    """True if an approval covers one command in one directory."""
    return not isinstance(grant.scope, PrefixScope | RuleScope | ToolScope)


def rule_of_grant(grant: Grant) -> Rule:
    """Return the rule that stands for a remembered prefix."""
    scope = grant.scope
    if not isinstance(scope, PrefixScope):
        raise ValueError(f"the approval {grant.id} remembers no prefix")
    return Rule(
        name=PREFIX_OF_GRANT + grant.id,
        prefix=scope.words,
        options=options_behind(grant.spec, scope.words),
        directory=scope.directory,
        place=grant.spec.place or None,
        sandbox=grant.sandbox.kind if grant.sandbox is not None else False,
        network=grant.sandbox is not None and grant.sandbox.network,
        execute=grant.sandbox.execute if grant.sandbox is not None else (),
    )


def saved_rule(
    scope: RuleScope, spec: CommandSpec, *, call_id: str, root: str | None, now: float, sandbox: Sandbox | None = None
) -> Rule:
    """Return the rule that a human saved with an approval; with `root`, it holds in that workspace alone.

    Commands that it allows get the sandbox of the approved call, because the human has seen that one work.
    """
    return Rule(
        name=" ".join(scope.words),
        prefix=scope.words,
        options=tuple(dict.fromkeys((*options_behind(spec, scope.words), *scope.options))),
        directory=root,
        place=spec.place or None,
        until=None if scope.minutes is None else now + 60 * scope.minutes,
        justification=f"{SAVED_WITH}{call_id}",
        sandbox=sandbox.kind if sandbox is not None else False,
        network=sandbox is not None and sandbox.network,
        execute=sandbox.execute if sandbox is not None else (),
    )


def options_behind(spec: CommandSpec, words: Sequence[str]) -> tuple[str, ...]:
    """Return the options of an approved command after a prefix."""
    found: list[str] = []
    for command in _named(with_variables(view(spec.command).plain or ())):
        if begins(command, words):
            # the human saw these options and no others
            found += [word for word in command.argv[len(rest_of(words)) :] if word.startswith("-")]
    return tuple(dict.fromkeys(found))


def begins(command: PlainCommand, words: Sequence[str]) -> bool:
    """True if a command begins with these words, variables first that a rule has to name."""
    return (*to_be_named(command.assignments), *command.argv)[: len(words)] == tuple(words)


def _named(commands: Iterable[PlainCommand], depth: int = 0) -> Iterator[PlainCommand]:
    """Yield commands as the words of a rule name them: those inside of a wrapper instead of the wrapper."""
    for command in commands:
        is_plain = not any(each.opens_file for each in command.redirections)
        inside = _inside(command) if is_plain and depth < DEEPEST else ()
        yield from _named(inside, depth + 1) if inside else (command,)


def _inside(command: PlainCommand) -> Sequence[PlainCommand]:
    named = behind_env(command)
    return commands_inside(command) if named is None else (named,)


def scope_problem(scope: Scope, spec: CommandSpec) -> str | None:
    """Return why an approval cannot be remembered with this scope, or None."""
    if isinstance(scope, ToolScope):
        return _tool_scope_problem(scope, spec.command)
    if not isinstance(scope, PrefixScope | RuleScope):
        return None
    seen = view(spec.command)
    if adds_variables(spec.environment):
        return "a command with environment variables can only be remembered exactly"
    if seen.plain is None:
        return f"it can only be remembered exactly: {seen.doubt}"
    shown, words = " ".join(scope.words), rest_of(scope.words)
    commands = with_variables(seen.plain)
    meant = [command for command in (*commands, *_named(commands)) if begins(command, scope.words)]
    if not meant:
        return f"no command of this call begins with {shown!r}"
    # a program alone says nothing about what it does
    if len(words) < 2:
        return f"{shown!r} is too short: add the subcommand or the first argument"
    if is_too_broad(scope.words):
        return f"{shown!r} could run nearly anything"
    if any(each.opens_file for command in meant for each in command.redirections):
        return "a command with < or > can only be remembered exactly"
    if hard := next((each for each in scope.words[: -len(words)] if not may_be_offered(each)), None):
        return f"a command with the variable {hard.partition('=')[0]} can only be remembered exactly"
    if any(
        danger.word >= len(words)
        for command in meant
        for danger in dangers_of_argv(command.argv, has_input=command.piped)
    ):
        return f"{shown!r} does not name its dangerous option or argument"
    return _options_problem(scope) if isinstance(scope, RuleScope) else None


def _options_problem(scope: RuleScope) -> str | None:
    """Why a rule may not list the further options of a scope: it would excuse what they run or write."""
    words = rest_of(scope.words)
    for option in scope.options:
        dangers = dangers_of_argv((*words, option, "x"), has_input=False)
        if not option.startswith("-") or any(danger.word >= len(words) for danger in dangers):
            return f"{option!r} is dangerous, or no option"
    return None


def _tool_scope_problem(scope: ToolScope, command: Command) -> str | None:
    if sum(map(bool, (scope.tool, scope.hosts, scope.path))) != 1:
        return "it needs a tool, or hosts, or the pattern of files: one of them"
    if not isinstance(command, CarriedOut):
        return "it is a command, not a tool of the agent"
    if scope.path:
        return _path_scope_problem(scope, command)
    # Servers name their tools and agents their hosts: as a pattern such a name would allow others as well.
    if has_wildcards(command.tool, *(command.targets if isinstance(command, Function) else ())):
        return "a name with *, ? or [ can only be remembered exactly"
    return _name_problem(scope.tool, command) if scope.tool else _hosts_problem(scope.hosts, command)


def _path_scope_problem(scope: ToolScope, command: CarriedOut) -> str | None:
    if not isinstance(command, FileEdits):
        return "it is not an edit of files"
    if scope.where == "project" and scope.path.startswith(("//", "~/")):
        return "a rule for this workspace covers no files outside of it"
    return f"the scope {problem}" if (problem := path_problem(scope.path)) else None


def _name_problem(name: str, command: CarriedOut) -> str | None:
    if isinstance(command, FileEdits) or command.about == WEB:
        return "it is about a tool, and this call is about files or hosts"
    whole = server_pattern(command.targets[0]) if command.about == "server" and command.targets else ""
    return None if name in {*tool_names(command), whole} else f"{name!r} is not the name of its tool"


def _hosts_problem(hosts: tuple[str, ...], command: CarriedOut) -> str | None:
    targets = command.targets if isinstance(command, Function) and command.about == WEB else ()
    if problem := next(filter(None, map(host_problem, hosts)), ""):
        return f"the scope {problem}"
    if wide := next((host for host in hosts if host.startswith("*.") and has_many_owners(host[2:])), ""):
        return f"the hosts of {wide!r} may belong to many people"
    if not targets or not all(any(host_matches(host, target) for host in hosts) for target in targets):
        return "it does not name the hosts of this call"
    return None


def saved_tool_rules(scope: ToolScope, *, call_id: str, root: str | None, now: float) -> tuple[Rule, ...]:
    """Return the rules that a human saved with the approval of a tool's call; with `root`, for that workspace alone."""
    shared: dict[str, Any] = {
        "directory": root,
        "until": None if scope.minutes is None else now + 60 * scope.minutes,
        "justification": f"{SAVED_WITH}{call_id}",
    }
    if scope.tool:
        return (Rule(name=scope.tool, anything=True, tool=scope.tool, **shared),)
    if scope.path:
        return (Rule(name=f"edits of {scope.path}", path=scope.path, **shared),)
    return tuple(Rule(name=f"fetches from {host}", host=host, **shared) for host in scope.hosts)


_VERB = re.compile(
    r"[A-Za-z](?!.*\.(?:[cm]?[jt]sx?|py|rb|php|pl|sh|lua|dll|exe|jar|R|jl|exs?|groovy|ps1)\Z)[A-Za-z0-9_:.-]*\Z"
)
"""The name of an action, such as `build.prod`, and not that of a script, whose words may be anything."""
_LONGER: dict[str, tuple[int, frozenset[str]]] = {
    program: (length, frozenset(words.split()))
    for program, length, words in (
        ("npm", 3, "run run-script exec config cache pkg"),
        ("pnpm", 3, "run exec dlx config store"),
        ("yarn", 3, "run exec dlx workspace config"),
        ("bun", 3, "run x pm"),
        ("deno", 3, "task"),
        ("docker", 3, "compose container image volume network system context buildx builder"),
        ("podman", 3, "compose container image volume network system pod"),
        ("git", 3, "stash remote worktree submodule bisect notes lfs flow"),
        ("go", 3, "mod work tool"),
        ("cargo", 3, "run xtask"),
        ("uv", 3, "pip run tool python cache"),
        ("uvx", 2, ""),
        ("poetry", 3, "run env cache config self"),
        ("pipenv", 3, "run"),
        ("hatch", 3, "run env"),
        ("pdm", 3, "run"),
        ("bundle", 3, "exec"),
        ("terraform", 3, "state workspace"),
        ("systemctl", 3, "status start stop restart enable disable"),
        ("kubectl", 3, "get describe logs rollout config top create apply"),
        ("mise", 3, "exec run"),
        ("dotnet", 3, "tool nuget"),
        ("flask", 3, "db"),
    )
}
"""Programs with nested subcommands: how many words name the action, and after which second words."""

MOST = 4
"""Prefixes suggested for one call."""


def suggested_prefixes(
    spec: CommandSpec, is_allowed: Callable[[PlainCommand], bool] = lambda _: False
) -> tuple[tuple[str, ...], ...]:
    """Return a prefix for each command of a call, or none at all if one command has no safe prefix.

    `is_allowed`: returns True for a command that needs none, such as `tail` behind `npm test`.
    """
    plain = view(spec.command).plain
    if plain is None:
        return ()
    found: list[tuple[str, ...]] = []
    for command in _named(each for each in with_variables(plain) if not is_allowed(each)):
        if is_allowed(command):
            continue
        words = _prefix(command.argv)
        # one command that would be asked anyway makes the others useless
        if words is None:
            return ()
        prefix = (*to_be_named(command.assignments), *words)
        if scope_problem(PrefixScope(words=prefix), spec) is not None:
            return ()
        if prefix not in found:
            found.append(prefix)
    return tuple(found) if len(found) <= MOST else ()


def _prefix(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words that name the action of a command, or None."""
    length = 2
    known = _LONGER.get(argv[0])
    if entry_of(argv[0]).grouped:
        length = 3
    elif known is not None and argv[1:2] and argv[1] in known[1]:
        length = known[0]
    # the words behind a script are its own, and may be anything
    if is_interpreter(argv[0]) or entry_of(argv[0]).shell == "posix" or argv[0] in BUILTINS:
        return None
    if len(argv) < length or "/" in argv[0]:
        return None
    return argv[:length] if all(_VERB.match(word) for word in argv[1:length]) else None


_ENDING = re.compile(r"(?<=[^/])\.[A-Za-z0-9]+\Z")
_REGISTRIES = frozenset("com net org edu gov gob gouv gub mil nom ltd plc sch".split())
"""Second-level names below which countries register names: `example.com.au`."""
_SHARED = frozenset(
    "appspot.com azurewebsites.net blogspot.com cloudfunctions.net deno.dev fastly.net "
    "firebaseapp.com fly.dev github.io githubusercontent.com gitlab.io googleapis.com googleusercontent.com "
    "herokuapp.com hf.space myshopify.com netlify.app ngrok-free.app ngrok.app ngrok.io notion.site now.sh "
    "onrender.com pages.dev r2.dev readthedocs.io render.com repl.co replit.app run.app sharepoint.com "
    "squarespace.com substack.com supabase.co surge.sh trycloudflare.com tumblr.com vercel.app web.app webflow.io "
    "wixsite.com wordpress.com workers.dev".split()
)
"""Domains of services that give everybody a host."""
_SHARED_DEEP = frozenset("amazonaws.com cloudapp.net cloudfront.net windows.net".split())
"""The same, with levels for regions and kinds of service in between."""


def suggested_targets(command: CarriedOut, files: Sequence[EditedFile], home: str) -> tuple[str, ...]:
    """Return what an approval of a call may be about beside this call, the narrowest first, as rules write it."""
    if isinstance(command, FileEdits):
        return tuple(dict.fromkeys(_patterns(files, home))) if files else ()
    if command.about == WEB:
        return tuple(_host_lists(command.targets))
    if has_wildcards(command.tool, *command.targets):
        return ()
    if command.about == "server" and len(command.targets) == 2:
        return (tool_names(command)[-1], server_pattern(command.targets[0]))
    return (command.tool,)


def has_wildcards(*names: str) -> bool:
    """True if a name would mean others as well if it were taken for a pattern."""
    return any(character in name for name in names for character in "*?[")


def _patterns(files: Sequence[EditedFile], home: str) -> Iterator[str]:
    """Yield the patterns of just this file, of those below its directory, and of those of its kind.

    The caller leaves out those that would not cover the files, such as the pattern of a directory for a `Makefile`.
    """
    outside = any(file.outside for file in files)
    slash = "/" if outside else ""
    paths = [file.real.lstrip("/") if outside else file.inside for file in files]
    if len(files) == 1:
        yield slash + literal_pattern(paths[0])
    directory = commonpath([path.rpartition("/")[0] for path in paths])
    if directory and not (outside and ("/" not in directory or f"{home}/".startswith(f"/{directory}/"))):
        yield f"{slash}{literal_pattern(directory)}/"
    endings = {_ENDING.search(path) for path in paths}
    kinds = {found[0] if found else "" for found in endings}
    if not outside and len(kinds) == 1 and (kind := kinds.pop()):
        yield f"*{kind}"


def _host_lists(hosts: Sequence[str]) -> Iterator[str]:
    """Yield the hosts of a fetch, and the domain that they are all in."""
    if not hosts or has_wildcards(*hosts):
        return
    yield " ".join(hosts)
    domains = {host.partition(".")[2] if host.count(".") > 1 else host for host in hosts}
    domain = domains.pop()
    if not domains and "." in domain and not has_many_owners(domain):
        yield f"{domain} *.{domain}" if domain in hosts else f"*.{domain}"


def has_many_owners(domain: str) -> bool:
    """True if the hosts below a domain belong to different people, as far as that is known, or it is an address."""
    labels = domain.rstrip(".").lower().split(".")
    if len(labels) < 2 or not re.fullmatch("[a-z]{2,}|xn--[a-z0-9-]+", labels[-1]):
        return True
    of_country = len(labels) == 2 and len(labels[1]) == 2 and (labels[0] in _REGISTRIES or len(labels[0]) < 3)
    return of_country or ".".join(labels) in _SHARED or ".".join(labels[-2:]) in _SHARED_DEEP
