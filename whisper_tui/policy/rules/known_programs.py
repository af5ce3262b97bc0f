"""The programs of which a table says what their words may do, so that a rule may name them alone (decision 9)."""

from collections.abc import Sequence

from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.read_only_programs import check_of
from whisper_tui.policy.commands.special_wrappers import SPECIAL
from whisper_tui.policy.commands.spellings import usual_name
from whisper_tui.policy.commands.wrappers import BUILTINS, FOREIGN_SHELLS, SHELLS, runner_of, wrapper_of
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.risks.command_dangers import is_checked
from whisper_tui.programs.entries import entry_of

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


_EXAMINED = frozenset(
    "mkdir touch cp mv ln rmdir install mktemp tee true false sleep bats phpunit rspec jest vitest mocha karma "
    "cypress playwright eslint prettier stylelint tsc biome ruff black isort flake8 pylint mypy pyright pytest tox "
    "nox coverage rubocop standardrb golangci-lint gofmt goimports gotestsum clang-format clang-tidy shellcheck shfmt "
    "hadolint yamllint markdownlint rustfmt rustc javac gcc g++ cc c++ clang clang++ ld cmake ctest meson turbo nx "
    "lerna webpack vite rollup esbuild sass tree-sitter protoc buf ktlint detekt swiftlint checkstyle alembic "
    "pre-commit".split()
)
"""Everyday programs of developers. What they run is the project's own configuration, as a rule for them says."""


def is_known(word: str) -> bool:
    """True if something is known of a program, or if it is a file that its path names."""
    name = program_name(word)
    return "/" in word or any(_is_known_name(each) for each in (usual_name(name)[0], name))


def _is_known_name(name: str) -> bool:
    entry = entry_of(name)
    only_reads = entry.reads is not None or entry.shows or check_of(name) or name == "git"
    runs_others = name in SPECIAL or wrapper_of(name) or runner_of(name) or name in SHELLS | FOREIGN_SHELLS
    told = name in RUNNERS | BUILTINS | _EXAMINED or is_checked(name) or is_interpreter(name)
    return bool(only_reads or runs_others or told)


def says_too_little(words: Sequence[str]) -> bool:
    """True if the words of a rule name nothing but a program of which nothing is known."""
    return len(words) == 1 and not is_known(words[0])
