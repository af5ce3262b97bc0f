"""Prefixes that are too broad for a rule, because they can be continued to run anything."""

from collections.abc import Sequence

from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.shells import StandardInput
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.commands.wrappers import SHELLS, WRAPPERS
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.risks.command_dangers import dangers_of_program

RUNNERS = frozenset(
    "npx bunx uvx pipx pnpx dlx make gmake ninja just task rake gradle gradlew mvn ant bazel tox nox invoke "
    "cargo go npm pnpm yarn bun deno uv poetry pipenv hatch rye pdm conda mamba direnv mise asdf devbox nix nix-shell "
    "docker podman nerdctl docker-compose kubectl oc helm terraform tofu ansible ansible-playbook vagrant lxc "
    "git gh glab hg svn aws gcloud az doctl systemctl service launchctl apt apt-get dnf yum pacman brew snap pip pip3 "
    "gem bundle composer dotnet flutter dart swift mix rebar3 stack cabal ssh mosh tmux screen at batch crontab "
    "source . eval exec builtin command trap awk gawk mawk nawk sed ed ex vim vi nvim emacs find fd xargs parallel "
    "osascript open xdg-open start sqlite3 psql mysql mongosh redis-cli gdb lldb strace ltrace expect script "
    "watch entr time curl wget rsync scp sftp nc ncat socat tee dd busybox toybox wsl cmd start-process chroot "
    "sudoedit su login newgrp sg".split()
)
"""Programs whose name alone says nothing about what they do."""

_RUN_WORDS: dict[str, frozenset[str]] = {
    program: frozenset(words.split())
    for program, words in {
        "npm": "run exec x run-script start test-script",
        "pnpm": "run exec dlx",
        "yarn": "run exec dlx",
        "bun": "run x exec",
        "deno": "run task eval",
        "docker": "run exec compose container",
        "podman": "run exec container",
        "nerdctl": "run exec",
        "docker-compose": "run exec",
        "kubectl": "exec run",
        "oc": "exec run rsh",
        "uv": "run tool x",
        "uvx": "",
        "poetry": "run shell",
        "pipenv": "run shell",
        "hatch": "run",
        "rye": "run",
        "pdm": "run",
        "conda": "run",
        "mamba": "run",
        "direnv": "exec",
        "mise": "exec x run",
        "asdf": "exec",
        "devbox": "run shell",
        "nix": "run shell develop",
        "cargo": "run",
        "go": "run generate tool",
        "dotnet": "run script",
        "dart": "run",
        "flutter": "run",
        "swift": "run",
        "bundle": "exec",
        "composer": "exec run",
        "pipx": "run",
        "git": "config",
        "gh": "api alias extension",
        "find": "-exec -execdir -ok -okdir -delete .",
        "tmux": "new new-session send-keys run-shell",
        "lxc": "exec",
        "aws": "s3 ec2 iam ssm lambda",
    }.items()
}
"""Subcommands that run the words after them."""

_MODULE_SWITCHES = frozenset({"-", "-c", "-m", "-e", "-E", "-r", "-p", "-i", "-s", "-x", "-n"})


def is_too_broad(prefix: Sequence[str]) -> bool:
    """True if an allow rule with this prefix would allow nearly anything."""
    words = [word for word in prefix if word]
    # variables before the command do not make a prefix narrower
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words = words[1:]
    if not words:
        return True
    name = program_name(words[0])
    rest = words[1:]
    if name in SHELLS or name in {"pwsh", "powershell", "cmd", "wsl"}:
        return all(word.startswith(("-", "/")) for word in rest) or "c" in rest[0]
    if name in WRAPPERS and name != "time":
        return True
    if is_interpreter(name) and (all(word.startswith("-") for word in rest) or rest[0] in _MODULE_SWITCHES | {"eval"}):
        return True
    behind = unwrap(tuple(words), StandardInput())
    if behind is not None and behind.runner is not None and behind.commands:
        # `uv run pytest` is as narrow as `pytest` is
        return is_too_broad([word or "" for word in behind.commands[0]])
    if name in RUNNERS and not [word for word in rest if not word.startswith("-")] and name not in {"sed"}:
        return not _names_harmless_option(rest)
    if name in {"source", ".", "eval", "exec", "npx", "bunx", "uvx", "pnpx"} and not rest:
        return True
    if len(rest) <= 1 or (len(rest) == 2 and rest[1].startswith("-")):
        run = _RUN_WORDS.get(name, frozenset())
        if rest and rest[0] in run:
            return True
    return _only_begins_danger(words, name)


def _names_harmless_option(rest: Sequence[str]) -> bool:
    return len(rest) == 1 and rest[0] in {"--version", "--help", "-V"}


def _only_begins_danger(words: Sequence[str], name: str) -> bool:
    """True if the last word is dangerous and its value would follow the prefix."""
    found = dangers_of_program(words, name)
    return any(danger.word == len(words) - 1 and danger.id == "runs-other-code" for danger in found)
