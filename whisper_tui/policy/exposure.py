"""Findings about what a command reaches: other places, other machines, secrets, and what its variables change."""

import posixpath

from whisper_tui.model.masking import is_secret_name, secret_spans
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Risk
from whisper_tui.policy.dangers.network import talks
from whisper_tui.policy.environment import changes_what_runs
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.question import Question
from whisper_tui.policy.read_only.secret_names import names_secret, shows_environment
from whisper_tui.policy.view import View
from whisper_tui.policy.wrappers.peeled import program_name
from whisper_tui.policy.wrappers.shells import RUNS_INPUT
from whisper_tui.policy.wrappers.table import SHELLS


def exposures(question: Question, seen: View) -> tuple[Risk, ...]:
    """All findings of this kind."""
    return (
        *_writes_outside(question, seen),
        *_network(seen),
        *_secrets(seen),
        *_reads_secrets(question, seen),
        *_environment(question, seen),
        *_unseen_script(seen),
    )


def _writes_outside(question: Question, seen: View) -> tuple[Risk, ...]:
    root = question.session_root.rstrip("/")
    cwd = question.resolved.cwd or question.spec.cwd
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access not in {"write", "net"}:
                continue
            name = redirection.target.value
            span = (redirection.target.start, redirection.target.end) if script is seen.scripts[0] else None
            if name is None:
                sentence = "Which file it writes is only known when it runs"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
            path = posixpath.normpath(posixpath.join(cwd, name))
            if root and path != root and not path.startswith(root + "/"):
                sentence = f"It writes to {visible(name)}, outside the workspace {root}"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
    return ()


def _network(seen: View) -> tuple[Risk, ...]:
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access == "net":
                return (Risk(id="network", sentence="It opens a connection to another machine"),)
    for command in seen.commands:
        if command.name is not None and talks(command.argv, command.name):
            sentence = f"{visible(command.name)} talks to other machines"
            return (Risk(id="network", sentence=sentence, span=_word(command, 0)),)
    return ()


def _secrets(seen: View) -> tuple[Risk, ...]:
    sentence = "It seems to hold a secret, which every process on this machine can read while it runs"
    if spans := secret_spans(seen.text):
        return (Risk(id="secret-in-arguments", sentence=sentence, span=spans[0]),)
    for command in seen.commands:
        if any(
            value and is_secret_name(name) for name, _, value in (each.partition("=") for each in command.assignments)
        ):
            return (Risk(id="secret-in-arguments", sentence=sentence, span=command.span),)
    return ()


_SHOWS = frozenset(
    "cat tac head tail less more most bat batcat nl od xxd hexdump hd strings base64 base32 grep egrep fgrep rg ag sed "
    "awk gawk mawk jq yq cut sort uniq wc diff cmp cp mv scp rsync tar zip vim vi view nano emacs source . openssl git "
    "dd tee xclip pbcopy gpg cksum rev fold fmt column paste comm join".split()
)
"""Programs that show or pass on what is inside of the files that they are given."""


def _reads_secrets(question: Question, seen: View) -> tuple[Risk, ...]:
    """Key files, files of passwords, and the environment, where agents' and services' keys usually are."""
    for command in seen.commands:
        if shows_environment(command.argv):
            sentence = "It shows variables of the environment, which often hold keys and passwords"
            return (Risk(id="reads-secrets", sentence=sentence, span=_word(command, 0)),)
        at = next((at for at, word in enumerate(command.argv) if at and word and names_secret(word)), None)
        if at is not None and command.name in _SHOWS:
            return (_reads_secret(command.argv[at] or "", _word(command, at)),)
        for redirection in command.redirections:
            name = redirection.target.value
            if redirection.access == "read" and name is not None and names_secret(name):
                return (_reads_secret(name, (redirection.target.start, redirection.target.end)),)
    for meaning in question.resolved.commands:
        name = next((word for word in meaning.words[1:] if word and names_secret(word)), None)
        if name is not None and program_name(meaning.words[0] or "") in _SHOWS:
            return (_reads_secret(name, None),)
    for place in question.resolved.places:
        command = seen.commands[place.command]
        if (place.kind == "own" or names_secret(place.path)) and command.name in _SHOWS:
            return (_reads_secret(place.path, command.span),)
    return ()


def _reads_secret(name: str, span: tuple[int, int] | None) -> Risk:
    return Risk(
        id="reads-secrets", sentence=f"{visible(name)} usually holds keys, passwords or other secrets", span=span
    )


def _environment(question: Question, seen: View) -> tuple[Risk, ...]:
    added = [name for name in question.spec.environment if changes_what_runs(name)]
    if added:
        sentence = f"{visible(', '.join(added))} can make it run something that its words do not name"
        return (Risk(id="environment", sentence=sentence),)
    for command in seen.commands:
        for assignment in command.assignments:
            name = assignment.partition("=")[0].rstrip("+")
            if changes_what_runs(name):
                sentence = f"{visible(name)} can make it run something that its words do not name"
                return (Risk(id="environment", sentence=sentence, span=command.span),)
    return ()


def _word(command: Inner, at: int) -> tuple[int, int]:
    return command.places[at] if at < len(command.places) else command.span


def _unseen_script(seen: View) -> tuple[Risk, ...]:
    """`curl … | sh`, `bash <(curl …)`: a shell runs what nobody can have read, for it does not exist yet."""
    for command in seen.commands:
        if command.opaque == RUNS_INPUT or (command.name in SHELLS and command.argv[1:2] == (None,)):
            sentence = f"{visible(command.name or 'A shell')} runs a script that nobody can read before it runs"
            return (Risk(id="unseen-script", sentence=sentence, span=command.span),)
    return ()
