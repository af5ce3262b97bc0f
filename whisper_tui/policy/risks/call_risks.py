"""Risks of a whole call: what its commands may do, and how its text may deceive."""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from whisper_tui.model.call import Argv, Command, Shell
from whisper_tui.model.secrets import is_secret_name, secret_spans
from whisper_tui.model.text import BIDI, BLANKS, PLAIN_CONTROLS, hidden_parts, visible
from whisper_tui.model.verdict import Risk
from whisper_tui.policy.commands.argv import Words, named_words, parse_git, program_name
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import changes_what_runs, sets_variables
from whisper_tui.policy.risks.code_execution import runs_unseen_code, unseen_code
from whisper_tui.policy.risks.command_dangers import is_fork_bomb
from whisper_tui.policy.risks.host_access import reaches_network
from whisper_tui.policy.risks.look_alikes import FLAGS, JOINED, LETTERS, STYLED, TONED
from whisper_tui.policy.risks.sensitive_paths import names_secret, shows_environment
from whisper_tui.policy.shell.static_expansion import is_harmless_setting
from whisper_tui.policy.shell.syntax import SimpleCommand, Word, compounds
from whisper_tui.policy.view import CommandView, Question, view
from whisper_tui.programs.entries import entry_of

_WORD = re.compile(r"[^\s'\"/;&|()<>=,:]+")
# 40 blanks or 8 empty lines: enough to push the rest off a screen, more than any alignment
_PADDING = re.compile(r"[^\S\n]{40,}(?=\S)|\n{8,}(?=\S)")
_REASSURING = re.compile(
    r"\b(?:safe(?:ly)?|harmless|only|just|dry.?run|read.?only|test(?:ing)?|check(?:ing)?|nothing|no changes?)\b", re.I
)
_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
"""Scripts of which every letter is suspicious inside of a Latin word."""
_TELLTALE = re.compile(
    r"delet|remov|clean|clear|drop|destroy|wip|eras|purg|prun|reset|discard|revert|undo|overwrit|forc|kill|stop|shut|"
    r"uninstall|terminat|publish|rebas|rm\b|trunc|format|unlink|restor|checkout|switch|kasser|löschen|supprim|"
    r"tidy|fresh|replac|renew|recreat|rebuild|redo|restart|roll|fix|sudo|root|permission|right|privileg|admin|own",
    re.I,
)
"""Words with which a description tells that something is removed, replaced, ended, or done with more rights."""
_DESCRIBED = frozenset({"destructive", "privilege"})
"""The risks that a description should mention."""


def deception_risks(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """Return all findings about deceptive text."""
    return (
        *_look_alikes(seen.text),
        *_hidden_tail(seen.text),
        *_soothing_words(seen),
        *_silent_description(question, seen),
        *_empty_variables(question, seen),
    )


def _look_alikes(text: str) -> tuple[Risk, ...]:
    if text.isascii():
        return ()
    for match in _WORD.finditer(text):
        word = match[0]
        # a word entirely in another script is a word of that language; mixed scripts imitate
        if word.isascii() or not any(character.isascii() and character.isalpha() for character in word):
            continue
        odd = next((each for each, after in zip(word, f"{word[1:]} ", strict=True) if _imitates(each, after)), None)
        if odd is not None:
            name = unicodedata.name(odd, "unknown").lower()
            sentence = f"{visible(word)} contains a letter that looks like a Latin one ({name})"
            return (Risk(id="look-alikes", sentence=sentence, span=match.span()),)
    return ()


def _imitates(character: str, after: str) -> bool:
    # with the emoji style, a letter is a picture
    if character.isascii() or after == _STYLE:
        return False
    return character in _letters() or unicodedata.name(character, "").startswith(_SCRIPTS)


@cache
def _letters() -> frozenset[str]:
    return _characters(LETTERS)


def _characters(ranges: str) -> frozenset[str]:
    ends = ([int(end, 16) for end in part.split("-")] for part in ranges.split())
    return frozenset(chr(point) for part in ends for point in range(part[0], part[-1] + 1))


_STYLE = "\ufe0f"
_MAY_BE_EMOJI = re.compile("[\u200d\ufe0f\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff]")


@cache
def _emoji() -> re.Pattern[str]:
    """Return an expression of emoji that hold characters which are hidden elsewhere (UTS #51)."""
    joined = (tuple(chr(int(point, 16)) for point in each.split("+")) for each in JOINED.split())
    # the colours of skin of its parts differ, and U+FE0F is often left out
    parts = ("[\U0001f3fb-\U0001f3ff\ufe0f]*".join(map(re.escape, each)) for each in sorted(joined, reverse=True))
    flags = ("".join(chr(0x1F1E6 + ord(letter) - ord("A")) for letter in each) for each in FLAGS.split())
    toned, styled = ("".join(sorted(_characters(each))) for each in (TONED, STYLED))
    alone = f"[{toned}][\U0001f3fb-\U0001f3ff]|[{styled}]{_STYLE}|[0-9#*]{_STYLE}\u20e3"
    return re.compile(f"(?:{'|'.join(parts)})[\U0001f3fb-\U0001f3ff\ufe0f]?|{'|'.join(flags)}|{alone}")


def _hidden_tail(text: str) -> tuple[Risk, ...]:
    match = _PADDING.search(text)
    if match is None:
        return ()
    sentence = "A long run of blanks may push the rest out of sight"
    return (Risk(id="hidden-tail", sentence=sentence, span=match.span()),)


def _soothing_words(seen: CommandView) -> tuple[Risk, ...]:
    if not any(danger.id == "destructive" for _, danger in seen.dangers):
        return ()
    for command in seen.commands:
        said = " ".join(word or "" for word in command.argv[1:])
        if command.name in {"echo", "printf"} and _REASSURING.search(said):
            sentence = "Prints reassuring words next to a destructive command"
            return (Risk(id="soothing-words", sentence=sentence, span=command.span),)
    comment = re.search(r"(?:^|\s)#[^\n]*", seen.text)
    if not seen.is_argv and comment and _REASSURING.search(comment[0]):
        sentence = "A reassuring comment accompanies a destructive command"
        return (Risk(id="soothing-words", sentence=sentence, span=comment.span()),)
    return ()


def _silent_description(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """Find a description that has no word about the command at all: any common word may be a mention."""
    said = question.description
    # what is written in letters of another language is not understood
    if not said.strip() or not said.isascii() or _TELLTALE.search(said):
        return ()
    stems = {word[:4].lower() for word in _STEM.findall(said)}
    for command, danger in seen.dangers:
        words = " ".join(word or "" for each in seen.commands for word in each.argv)
        if danger.id in _DESCRIBED and stems.isdisjoint(word[:4].lower() for word in _STEM.findall(words)):
            sentence = f"The agent's description does not mention what {visible(command.name or 'it')} does here"
            return (Risk(id="silent-description", sentence=sentence, span=command.place_of(danger.word)),)
    return ()


_STEM = re.compile(r"[A-Za-z]{3,}")


def _empty_variables(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """Find variables in paths of destructive commands: in `rm -r $DIR/`, an empty DIR leaves `/`."""
    outer = {id(command) for command, danger in seen.dangers if danger.id == "destructive"}
    if not outer or not seen.scripts:
        return ()
    set_here = _literal_variables(seen)
    for simple in seen.scripts[0].commands:
        if not any(id(command) in outer and command.span == simple.span for command in seen.commands):
            continue
        for word in simple.words[1:]:
            empty = [
                piece.text
                for piece in word.pieces
                if piece.kind in {"variable", "expansion"} and not _NEVER_EMPTY.match(piece.text)
                if piece.text not in set_here and not question.resolved.variables.get(piece.text, "")
            ]
            if empty:
                rest = "".join(piece.text for piece in word.pieces if piece.text not in empty)
                shown = visible(empty[0] if empty[0].startswith("$") else f"${empty[0]}")
                sentence = (
                    f"If `{shown}` is empty, this acts on `{visible(rest)}`" if rest else f"`{shown}` may be empty"
                )
                return (Risk(id="empty-variable", sentence=sentence, span=(word.start, word.end)),)
    return ()


_NEVER_EMPTY = re.compile(r"\$\{\w+:(?:\?|[=-][^}])")
"""`${DIR:?}` ends the shell if DIR is empty; `${DIR:-x}` and `${DIR:=x}` have another value."""


def _literal_variables(seen: CommandView) -> frozenset[str]:
    """Return the variables that certainly have a literal value where the text uses them."""
    script = seen.scripts[0]
    if any(command.argv and (command.name is None or sets_variables(command.argv)) for command in seen.commands):
        return frozenset()
    assigned = [word.pieces[0].text.partition("=")[0] for simple in script.commands for word in simple.assignments]
    # a loop over plain words sets its variable to one of them before each round
    loops = [each.words for each in compounds(script.tree) if each.kind in {"for", "select"}]
    names = [words[0].value for words in loops if words]
    found = {words[0].value for words in loops if len(words) > 1 and all(map(_is_never_empty, words))}
    found = {name for name in found if names.count(name) == 1} if len(names) == len(loops) else set()
    # only a text without branches, groups and conditions certainly sets the variable before it is used
    for at, simple in enumerate(script.tree):
        if not isinstance(simple, SimpleCommand):
            if simple == ";":
                continue
            break
        # in the background, or in a pipeline, only a subshell gets the value
        if simple.words or script.tree[at + 1 : at + 2] not in ([], [";"], ["&&"]):
            continue
        for word in simple.assignments:
            name, _, value = (word.value or "").partition("=")
            if value and assigned.count(name) == 1 and name not in script.loop_variables:
                found.add(name)
    return frozenset(name for name in found if name)


def _is_never_empty(word: Word) -> bool:
    return any(piece.text for piece in word.pieces) and all(piece.kind in {"text", "glob"} for piece in word.pieces)


def exposure_risks(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """Return the findings about files, the network, secrets and the environment."""
    return (
        *_writes_outside(question, seen),
        *_network(seen),
        *_secrets(seen),
        *_reads_secrets(question, seen),
        *_environment(question, seen),
    )


def _writes_outside(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    root = question.session_root.rstrip("/")
    cwd = question.resolved.cwd or question.spec.cwd
    # the supervisor has expanded `~` and variables in the targets
    redirects = [each for meaning in question.resolved.commands for each in meaning.redirects]
    known = [each.target for each in redirects if each.access == "write"]
    is_known = bool(redirects) and None not in (each.target for each in redirects)
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access not in {"write", "net"}:
                continue
            name = redirection.target.value
            # spans of inner scripts do not count in the text of the call
            span = (redirection.target.start, redirection.target.end) if script is seen.scripts[0] else None
            if name is None and is_known and not question.resolved.more:
                continue
            if name is None:
                sentence = "Writes to a file whose name is in a variable"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
            path = posixpath.normpath(posixpath.join(cwd, name))
            # by its text only; links are resolved by the supervisor, see `places`
            if root and path != root and not path.startswith(root + "/"):
                sentence = f"Writes to {visible(name)}, outside the workspace {root}"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
    for target in known:
        path = posixpath.normpath(posixpath.join(cwd, target or ""))
        # `sensitive-write` tells more about such a file
        if root and target and not (path + "/").startswith(root + "/") and path not in question.resolved.sensitive:
            sentence = f"Writes to {visible(target)}, outside the workspace {root}"
            return (Risk(id="writes-outside", sentence=sentence),)
    return ()


def _network(seen: CommandView) -> tuple[Risk, ...]:
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access == "net":
                return (Risk(id="network", sentence="Opens a network connection"),)
    users = [each for each in seen.commands if each.name is not None and reaches_network(each.argv, each.name)]
    for command in users:
        unknown = [at for at, word in enumerate(command.argv) if word is None]
        if unknown and not command.via:
            words = "\n".join(seen.text[slice(*command.place_of(at))] for at in unknown)
            # only their names: what stands around them, or as their default, may be a password
            named = dict.fromkeys(f"`${each[1]}`" if each[1] else "`$(…)`" for each in _EXPANSION.finditer(words))
            sent = ", ".join(tuple(named)[:MOST_SENT]) or "words that are only known when it runs"
            more = " and more" if len(named) > MOST_SENT else ""
            sentence = f"Uses the network with {sent}{more} (`{visible(command.name or '')}`)"
            return (Risk(id="network", sentence=sentence, span=command.place_of(unknown[0])),)
    for command in users:
        sentence = f"Uses the network (`{visible(command.name or '')}`)"
        return (Risk(id="network", sentence=sentence, span=command.place_of(0)),)
    return ()


MOST_SENT = 3
"""Variables in the words of a command that uses the network which are named."""

_EXPANSION = re.compile(r"\$\{?[!#]?(\w{1,40})|\$\(|`[^`]")


def _secrets(seen: CommandView) -> tuple[Risk, ...]:
    sentence = "Contains a password or key, visible to other processes"
    if spans := secret_spans(seen.text):
        return (Risk(id="secret-in-arguments", sentence=sentence, span=spans[0]),)
    for command in seen.commands:
        if any(
            value and is_secret_name(name) for name, _, value in (each.partition("=") for each in command.assignments)
        ):
            return (Risk(id="secret-in-arguments", sentence=sentence, span=command.span),)
    return ()


def _takes_content(program: str | None) -> bool:
    """True if a program shows or copies the content of the files in its arguments."""
    return entry_of(program).content != ""


def _reads_secrets(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """Find reads of key files, password files and the environment, which usually holds API keys."""
    for command in seen.commands:
        if shows_environment(command.argv):
            sentence = "Shows environment variables, which often contain keys and passwords"
            return (Risk(id="reads-secrets", sentence=sentence, span=command.place_of(0)),)
        files = named_words(command.argv)
        at = next((at for at, word in enumerate(command.argv) if at and word and _names_private(word, files)), None)
        if at is not None and _takes_content(command.name) and _shows_content(command):
            return (_reads_secret(command.argv[at] or "", command.place_of(at)),)
        for redirection in command.redirections:
            name = redirection.target.value
            if redirection.access == "read" and name is not None and _names_private(name):
                return (_reads_secret(name, (redirection.target.start, redirection.target.end)),)
    # the supervisor has expanded variables and patterns, which the text alone does not tell
    for meaning in question.resolved.commands:
        files = named_words(meaning.words)
        name = next((word for word in meaning.words[1:] if word and _names_private(word, files)), None)
        shown = program_name((*meaning.words, None)[0] or "")
        if name is not None and _takes_content(shown) and (shown != "git" or _git_shows_content(meaning.words)):
            return (_reads_secret(name, None),)
    for place in question.resolved.places:
        command = seen.commands[place.command]
        private = place.kind == "own" or _names_private(place.path)
        if private and _takes_content(command.name) and _shows_content(command):
            return (_reads_secret(place.path, command.span),)
    return ()


_GIT_SHOWS_NAMES = frozenset(
    "check-ignore check-attr ls-files ls-tree status rev-parse rev-list add rm mv checkout restore reset clean stage "
    "update-index sparse-checkout".split()
)
"""Subcommands of git that use the names of files alone."""


def _shows_content(command: InnerCommand) -> bool:
    return command.name != "git" or _git_shows_content(command.argv)


def _git_shows_content(argv: Words) -> bool:
    """True unless git only uses the names of the files: `git check-ignore .env`, `git log -- .env`."""
    apart = parse_git(argv)
    subcommand = argv[apart.at] if apart is not None and apart.at < len(argv) else None
    if apart is None or subcommand is None:
        return True
    if subcommand in {"log", "reflog", "whatchanged", "shortlog"}:
        # `-p`, `-u`, `-c`, `-L`, `-U5`, `--patch` and more show the changes; `--oneline` and `-5` do not
        options = [word for word in argv[apart.at + 1 :] if word is None or word.startswith("-")]
        return any(word is None or not _LOG_OF_NAMES.fullmatch(word) for word in options)
    return subcommand not in _GIT_SHOWS_NAMES


_LOG_OF_NAMES = re.compile(
    r"--|-\d+|-n\d*|--(?:oneline|stat|numstat|shortstat|name-only|name-status|all|graph|follow|decorate|no-merges|merges|"
    r"reverse|no-patch|(?:format|pretty|since|until|after|before|author|max-count|date|diff-filter)=.*)"
)
"""Options of `git log` that show no content of files."""


def _names_private(word: str, files: Sequence[str | None] | None = None) -> bool:
    """True if a word names a file with secrets. `files`: the words of its command that may name files at all."""
    if files is not None and word not in files and not word.startswith("-"):
        return False
    # a public key lies in the directory of the private ones, and is made to be shown
    return names_secret(word) and not word.endswith((".pub", "/known_hosts"))


def _reads_secret(name: str, span: tuple[int, int] | None) -> Risk:
    return Risk(id="reads-secrets", sentence=f"Reads keys or passwords: {visible(name)}", span=span)


def _environment(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    added = [name for name in question.spec.environment if changes_what_runs(name)]
    if added:
        sentence = f"Sets {visible(', '.join(added))}, which can change what runs"
        return (Risk(id="environment", sentence=sentence),)
    for command in seen.commands:
        for assignment in command.assignments:
            name = assignment.partition("=")[0].rstrip("+")
            splits_nothing = assignment == "IFS=" and command.name == "read"
            if changes_what_runs(name) and not splits_nothing and not is_harmless_setting(assignment):
                sentence = f"Sets {visible(name)}, which can change what runs"
                return (Risk(id="environment", sentence=sentence, span=command.span),)
    return ()


def _unseen_script(seen: CommandView) -> tuple[Risk, ...]:
    found = unseen_code(seen.commands, seen.scripts)
    return () if found is None else (Risk(id="unseen-script", sentence=visible(found[1]), span=found[0].span),)


LONGEST_JUDGED = 10_000
"""Characters beyond which no human can be expected to read a command."""

PAST_HOOK = Risk(
    id="past-hook",
    sentence=(
        "The agent's shell was given this command without an approval: another hook or plugin may have put it in the "
        "place of an approved one"
    ),
)
"""The risk of every command that reached the agent's shell past its hook (decision 35)."""

ALWAYS_ASKED = frozenset(
    {
        "control-characters", "deceptive-characters", "outside-workspace", "sensitive-write", "several-lines",
        "substitution", "too-long", "unknown-shell",
    }
)  # fmt: skip
"""Risks that are always asked, whatever rules and approvals say (decision 10)."""

KNOWN_SHELL_PATHS = frozenset(
    prefix + name
    for prefix in ("", "/bin/", "/usr/bin/", "/usr/local/bin/")
    for name in ("sh", "bash", "dash", "ksh", "zsh")
)
"""Shells that may read a text. Another program could interpret it in any way."""

MOST_DANGERS = 12
"""Dangers that are listed for one call."""

_OPENING = re.compile(r"\$\(|`|[<>]\(|\$\{[\s|]")
_FORMS = {
    "$(": "`$(…)`, which runs",
    "`": "backticks, which run",
    "<(": "`<(…)`, which runs",
    ">(": "`>(…)`, which runs",
}


def command_text(command: Command) -> str:
    """Return the text in which the spans of risks count: the shell text, or the argv joined by `shlex.join`."""
    return command.text


def risks_of(question: Question) -> tuple[Risk, ...]:
    """Return all risks of a call, the most surprising first."""
    command = question.spec.command
    seen = view(command)
    raw = "".join(command.words()) if isinstance(command, Argv) else command.text
    first = (*_hidden_characters(raw, command), *_length(raw))
    # the text has not been read, see `LONGEST_READ` in the view, so nothing is known about its commands
    if len(raw) > LONGEST_JUDGED and isinstance(command, Shell):
        return (*first, *_unknown_shell(command), *_outside_workspace(question), *_sensitive_write(question))
    return (
        *first,
        *_substitution(seen),
        *_unknown_shell(command),
        *(_outside_workspace(question) or _git_elsewhere(question, seen)),
        *_sensitive_write(question),
        *_unseen_script(seen),
        *_dangers(seen),
        *deception_risks(question, seen),
        *exposure_risks(question, seen),
    )


def _sensitive_write(question: Question) -> tuple[Risk, ...]:
    for path, kind in question.resolved.sensitive.items():
        sentence = f"May change {kind}, and with it what runs later or who may approve: {visible(path)}"
        return (Risk(id="sensitive-write", sentence=sentence),)
    return ()


def _dangers(seen: CommandView) -> tuple[Risk, ...]:
    """Return one risk for each id and sentence, at its first place."""
    found: dict[tuple[str, str], Risk] = {}
    for command, danger in seen.dangers:
        # `unseen-script` says the same, and more
        told = danger.id == "opaque" and (command.name == "eval" or runs_unseen_code(command, seen.scripts))
        if told or not danger.sentence:
            continue
        at = danger.word
        span = command.place_of(at)
        sentence = visible(danger.sentence)
        found.setdefault((danger.id, sentence), Risk(id=danger.id, sentence=sentence, span=span))
    for script in seen.scripts:
        if is_fork_bomb(script, seen.commands):
            sentence = "A function starts itself endlessly (fork bomb)"
            found["ends-processes", sentence] = Risk(id="ends-processes", sentence=sentence)
    return tuple(found.values())[:MOST_DANGERS]


def _hidden_characters(raw: str, command: Command) -> tuple[Risk, ...]:
    # a tab or a line end is layout in shell text, and unusual in an argument
    harmless = frozenset() if isinstance(command, Argv) else PLAIN_CONTROLS
    emoji = [found.span() for found in _emoji().finditer(raw)] if _MAY_BE_EMOJI.search(raw) else []
    parts = [part for part in hidden_parts(raw, keep=harmless) if not _covered(part, emoji)]
    found = list(dict.fromkeys(character for start, end in parts for character in raw[start:end]))
    shown = command_text(command)
    if any(ord(character) in BIDI or ord(character) > 0x9F for character in found):
        first = next(character for character in found if ord(character) > 0x9F)
        what = "unusual blanks" if ord(first) in BLANKS else "invisible or reordering characters"
        sentence = f"Contains {what} (U+{ord(first):04X})"
        return (Risk(id="deceptive-characters", sentence=sentence, span=_span(shown, first)),)
    hidden = [character for character in found if character not in PLAIN_CONTROLS]
    if hidden:
        sentence = f"Contains control characters (U+{ord(hidden[0]):04X})"
        return (Risk(id="control-characters", sentence=sentence, span=_span(shown, hidden[0])),)
    if found:
        # code and commit messages have several lines: worth a look, but no trick
        sentence = "An argument has several lines or tabs"
        return (Risk(id="several-lines", sentence=sentence, span=_span(shown, found[0])),)
    return ()


def _covered(part: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    """True if what is hidden belongs to pictures as a whole: several may stand side by side."""
    at = part[0]
    for start, end in spans:
        if start <= at < end:
            at = end
    return at >= part[1]


def _span(text: str, part: str) -> tuple[int, int] | None:
    start = text.find(part)
    return None if start < 0 else (start, start + len(part))


def _length(raw: str) -> tuple[Risk, ...]:
    if len(raw) <= LONGEST_JUDGED:
        return ()
    return (Risk(id="too-long", sentence=f"Has {len(raw):,} characters, too many to be read"),)


def _substitution(seen: CommandView) -> tuple[Risk, ...]:
    if not seen.expands or seen.passes_text:
        return ()
    substitutions = [span for script in seen.scripts[:1] for span in script.substitutions]
    if not substitutions:
        return (Risk(id="substitution", sentence="Evaluates a value as code while its words are expanded"),)
    start, end = substitutions[0]
    opening = _OPENING.match(seen.text, start)
    form = _FORMS.get(opening.group()[:2] if opening else "", "`${ …; }`, which runs")
    sentence = f"Contains {form} a command first"
    return (Risk(id="substitution", sentence=sentence, span=opening.span() if opening else (start, end)),)


def _unknown_shell(command: Command) -> tuple[Risk, ...]:
    if not isinstance(command, Shell) or command.shell in KNOWN_SHELL_PATHS:
        return ()
    return (Risk(id="unknown-shell", sentence=f"{visible(command.shell)} is not a known shell"),)


def _outside_workspace(question: Question) -> tuple[Risk, ...]:
    root, cwd = question.session_root.rstrip("/"), question.resolved.cwd or question.spec.cwd
    if cwd == root or cwd.startswith(root + "/") or not root:
        return ()
    return (Risk(id="outside-workspace", sentence=f"Runs outside the workspace {question.session_root}"),)


def _git_elsewhere(question: Question, seen: CommandView) -> tuple[Risk, ...]:
    """`git -C` and the like outside the workspace: git then uses the settings and hooks of that repository."""
    root, cwd = question.session_root.rstrip("/"), question.resolved.cwd or question.spec.cwd
    for command in seen.commands:
        if command.name != "git" or not root:
            continue
        apart = parse_git(command.argv)
        for name, value, at in apart.options if apart is not None else ():
            if name not in {"-C", "--git-dir", "--work-tree"} or value is None:
                continue
            place = posixpath.normpath(posixpath.join(cwd, value))
            if place != root and not place.startswith(root + "/"):
                span = command.place_of(at)
                sentence = f"git works in {visible(value)}, outside the workspace {question.session_root}"
                return (Risk(id="outside-workspace", sentence=sentence, span=span),)
    return ()
