"""Commands that can run held back: in a view of the files, until their effects are known (decision 36).

It is only read off the words whether that is of any use. What a command may do is decided by what it has done.
"""

import re
from collections.abc import Iterator

from whisper_tui.model.verdict import GRAVE, Risk
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import adds_variables
from whisper_tui.policy.risks.sensitive_paths import contains_home, shows_private
from whisper_tui.policy.view import CommandView, Question

NAME_FILES = frozenset(
    "rm grm rmdir unlink mv cp install ln link mkdir touch truncate tee dd chmod chown chgrp find gfind sed gsed sort "
    "split mkfifo".split()
)
"""Programs that change no files but those that their words name."""
ACT_OUTSIDE = {
    **dict.fromkeys("sudo doas su pkexec run0 runuser".split(), "runs with the rights of another user"),
    **dict.fromkeys(
        "docker podman nerdctl kubectl oc helm lxc terraform ssh mosh scp sftp systemctl systemd-run service launchctl "
        "psql mysql mongosh redis-cli mount umount at batch crontab".split(),
        "acts on more than files",
    ),
    **dict.fromkeys("kill pkill killall skill".split(), "ends processes"),
    **dict.fromkeys(
        "nohup setsid tmux screen disown daemonize start-stop-daemon".split(), "starts what goes on running"
    ),
    "shred": "destroys on purpose",
}
"""Programs whose effects no pre-images undo, or that would not work in a view of the files."""
_SETTLED = frozenset({"empty-variable", "silent-description", "unseen-script"})
"""Severe risks that are none once it is known what a command has changed, and before that is real."""
_OF_OUTSIDE = frozenset({"network", "environment", "outside-workspace", "unknown-shell", "too-long"})
"""Other risks that a view of the files does not settle: it would fail there, or show what nobody should see unasked."""
_GOES_ON = re.compile(
    r"(?:dev|start|serve|server|watch|preview|storybook|http\.server|runserver|nodemon|live-server|browser-sync|"
    r"-w|--watch(?:=.*)?|-f|--follow)\Z"
)
_SERVERS = frozenset(
    "npm pnpm yarn bun deno vite next nuxt astro webpack gatsby ng nodemon tsc jest vitest mocha ava python python3 "
    "flask uvicorn gunicorn hypercorn daphne streamlit rails rackup puma bundle cargo go air hugo jekyll mkdocs php "
    "mix iex tail journalctl watch entr fswatch inotifywait caddy nginx node http-server live-server serve".split()
)
"""Programs that go on until somebody ends them if one of their words says so."""
_ALWAYS_GOES_ON = frozenset(
    "watch entr fswatch nodemon uvicorn gunicorn hypercorn daphne streamlit rackup puma air caddy nginx http-server "
    "live-server serve vim vi nvim nano emacs less more man top htop btop iotop".split()
)


def not_held_back(question: Question, seen: CommandView, risks: tuple[Risk, ...]) -> str:
    """Return why a command is asked about at once instead of being held back, as a clause. Empty: it can be."""
    return next(_doubts(question, seen, risks), "")


def _doubts(question: Question, seen: CommandView, risks: tuple[Risk, ...]) -> Iterator[str]:
    spec, root = question.spec, question.session_root
    if question.by_agent or spec.place:
        yield "it does not run on this machine under the supervisor"
    if spec.tty or spec.accepts_input:
        yield "it waits for input"
    if adds_variables(spec.environment):
        yield "it brings variables of its own"
    if not root or root == "/" or contains_home(root):
        yield "its workspace contains a home directory"
    if question.resolved.problem or (question.resolved.own_shell and question.resolved.own_shell.only_there):
        yield "what it would run is not known"
    if seen.problem or not seen.commands:
        yield "it cannot be read"
    cwd = question.resolved.cwd or spec.cwd
    # Words that are only known when it runs name what is closed to it, if they name anything private.
    words = [tuple(word for word in inner.argv if word is not None) for inner in seen.commands]
    if shows_private(words, cwd, root, question.resolved.places):
        yield "it may show private files outside the workspace"
    for risk in risks:
        if risk.id in _OF_OUTSIDE or (risk.id in GRAVE and not _is_settled(risk, seen)):
            yield risk.sentence
    for command in seen.commands:
        yield from _doubts_about(command)


def _doubts_about(command: InnerCommand) -> Iterator[str]:
    name = command.name
    if command.background:
        yield "a part of it goes on in the background"
    if name in ACT_OUTSIDE:
        yield f"{name} {ACT_OUTSIDE[name]}"
    if name in _ALWAYS_GOES_ON:
        yield f"{name} goes on until somebody ends it"
    if name in _SERVERS and any(word is not None and _GOES_ON.match(word) for word in command.argv[1:]):
        yield f"{name} goes on until somebody ends it"


def _is_settled(risk: Risk, seen: CommandView) -> bool:
    """True if what a view of the files shows takes a risk away: what it deletes there is counted, and can be undone."""
    if risk.id in _SETTLED:
        return True
    if risk.id != "destructive":
        return False
    names = {command.name for command, danger in seen.dangers if danger.id == "destructive"}
    return bool(names) and names <= NAME_FILES
