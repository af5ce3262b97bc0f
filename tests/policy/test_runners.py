"""Deny rules match commands that other programs run, by a subcommand, an option or a text."""

from tests.policy.test_disguises import kind
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.decision import PrefixScope
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.argv import Unwrapped
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.commands.wrappers import StandardInput
from whisper_tui.policy.corpus import ROOT
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.rules.grants import scope_problem
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.view import Question

REACHED = [
    "uv run touch zz",
    "uv run --with x --frozen -p 3.12 touch zz",
    "uv --directory sub run -- touch zz",
    "uv tool run touch@1.2 zz",
    "uvx --from pkg touch zz",
    "linux32 -R touch zz",
    "pipx run --spec pkg touch zz",
    "poetry run touch zz",
    "poetry -C sub run touch zz",
    "pdm run -p sub touch zz",
    "hatch run touch zz",
    "hatch -e dev run dev:touch zz",
    "hatch run 'true; touch zz'",
    "rye run touch zz",
    "pipenv run touch zz",
    "conda run -n env --no-capture-output touch zz",
    "mamba run -p /env touch zz",
    "micromamba run -n env touch zz",
    "pixi run touch zz",
    "npx touch zz",
    "npx -y --package=x touch@latest zz",
    "npx -c 'touch zz'",
    "npm exec -- touch zz",
    "npm exec touch zz",
    "npm x --yes -c 'touch zz'",
    "pnpm exec touch zz",
    "pnpm -r exec touch zz",
    "pnpm -c exec touch zz",
    "pnpm exec -c 'touch zz'",
    "pnpm dlx touch zz",
    "yarn exec touch zz",
    "yarn dlx -p x touch zz",
    "yarn run touch zz",
    "bunx touch zz",
    "bun x touch zz",
    "bun run touch zz",
    "bun exec 'touch zz'",
    "bundle exec touch zz",
    "devbox run touch zz",
    "devbox run --pure -- touch zz",
    "direnv exec . touch zz",
    "mise exec node@20 -- touch zz",
    "mise x -c 'touch zz'",
    "asdf exec touch zz",
    "nix run nixpkgs#touch -- zz",
    "nix shell nixpkgs#coreutils -c touch zz",
    "nix develop --command touch zz",
    "nix-shell -p coreutils --run 'touch zz'",
    "tmux new 'touch zz'",
    "tmux -L x new-session -d -s a touch zz",
    "tmux new-window -n x 'touch zz'",
    "tmux neww touch zz",
    "tmux split-window -h 'touch zz'",
    "tmux splitw touch zz",
    "tmux run-shell 'touch zz'",
    "tmux run -b 'touch zz'",
    "tmux ls \\; run 'touch zz'",
    "tmux respawn-pane -k 'touch zz'",
    "tmux if-shell 'touch zz' ls",
    "tmux display-popup -E 'touch zz'",
    "tmux -c 'touch zz'",
    "screen touch zz",
    "screen -dmS name touch zz",
    "arch touch zz",
    "arch -arm64 touch zz",
    "perf stat touch zz",
    "perf stat -e cycles -r 3 -- touch zz",
    "perf record -g -o out touch zz",
    "coreutils --coreutils-prog=touch zz",
    "ld.so /bin/touch zz",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path /x /bin/touch zz",
    "start-stop-daemon --start --exec /bin/touch -- zz",
    "start-stop-daemon -S -x /bin/touch -- zz",
    "nu -c 'touch zz'",
    "xonsh -c 'touch zz'",
    "elvish -c 'touch zz'",
    "pwsh -Command 'touch zz'",
    "op run --env-file=x -- touch zz",
    "doppler run -p x -- touch zz",
    "doppler run --command 'touch zz'",
    "vault agent -config x -- touch zz",
    "envconsul -config x touch zz",
    "aws-vault exec prod -- touch zz",
    "aws-vault exec -n prod touch zz",
    "sops exec-env x.yml 'touch zz'",
    "dotenv touch zz",
    "dotenv -f .env run touch zz",
    "foreman run touch zz",
    "lxc-attach -n c -- touch zz",
    "flatpak run --command=touch org.x zz",
    "flatpak-spawn --host touch zz",
    "toolbox run -c c touch zz",
    "pdsh -w h1,h2 touch zz",
    "ansible all -m shell -a 'touch zz'",
    "ansible all --args='touch zz'",
    "salt '*' cmd.run 'touch zz'",
    "capsh --drop=all -- -c 'touch zz'",
    "fd --exec=touch",
    "fd . --exec touch",
    "fd -Hx touch",
    "fd -xtouch",
    "fd -HX touch",
    "fd --exec-batch=touch x",
    "gdb --args touch zz",
    "xterm -e touch zz",
    "gnome-terminal -- touch zz",
    "vagrant ssh -c 'touch zz'",
    "timeout 5 uv run bash -c 'npx touch zz'",
]

ASKED = [
    "perl -e 'system(\"touch zz\")'",
    "perl -e 'exec qw(touch zz)'",
    "python3 -c 'import os; os.system(\"touch zz\")'",
    'python3 -c \'import subprocess as s; s.run(["touch", "zz"])\'',
    "ruby -e '`touch zz`'",
    'node -e \'require("child_process").execSync("/usr/bin/touch zz")\'',
    "awk 'BEGIN{system(\"touch zz\")}'",
    "vim -c '!touch zz' -c q",
    "gdb -batch -ex 'shell touch zz'",
    "lldb -o 'platform shell touch zz'",
    "emacs --batch --eval '(shell-command \"touch zz\")'",
    "sed '1e touch zz' f",
    "psql -c '\\! touch zz'",
    "sqlite3 x '.shell touch zz'",
    "expect -c 'spawn touch zz'",
    "make -f - SHELL=touch",
    "some-new-runner touch zz",
    "some-new-runner --exec='touch zz'",
    "some-new-runner -x 'touch zz'",
    "yarn touch zz",
    "pnpm touch zz",
    "uv run --unheard-of touch zz",
    "tmux send-keys -t x 'touch zz' Enter",
    "tar --to-command='touch zz' -xf a.tar",
    "git -c core.pager='touch zz' log",
    "GIT_PAGER='touch zz' git log",
]


@each_row("text", REACHED)
def test_a_denied_command_is_denied_behind_a_runner(text: str) -> None:
    assert kind(text) == "refuse"


@each_row("text", ASKED)
def test_a_denied_word_in_code_or_behind_an_unknown_program_is_asked_whatever_is_allowed(text: str) -> None:
    assert kind(text) in {"ask", "refuse"}


@each_row(
    "text",
    [
        "echo touch zz",
        "git commit -m 'touch zz'",
        "rg -n touch src",
        "find . -name touch",
        "cat touch",
        "some-new-runner touched touch.txt",
        "python3 touch.py",
        "uv run pytest",
        "EDITOR=vi git commit",
    ],
)
def test_a_denied_word_that_is_only_data_is_not_in_the_way(text: str) -> None:
    assert kind(text) == "allow"


def test_the_reason_names_the_word_the_program_and_the_rule() -> None:
    verdict = evaluate(asked("some-new-runner touch zz"), RULES, ())
    place = "the arguments or the code of some-new-runner"
    assert verdict.reason == f"'touch', which the rule 'no touch' denies, occurs in {place}"


RULES = Rules(allow=(Rule(name="everything", anything=True),), deny=(Rule(name="no touch", prefix=("touch",)),))


def asked(text: str) -> Question:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    return Question("s", ROOT, spec, "", Resolved(program="/bin/bash", cwd=ROOT, shell="bash"))


@each_row("text", [text for text in REACHED if text.split()[0] not in {"timeout", "perf", "envconsul"}])
def test_a_runner_always_has_a_risk(text: str) -> None:
    destructive = text.replace("touch", "rm -rf" if "'" in text else "rm").replace("zz", "-rf .")
    assert risks_of(asked(destructive)) != ()


@each_row("text", ["devbox run rm -rf .", "some-new-runner rm -rf .", "some-new-runner bash -c x"])
def test_destructive_commands_behind_runners_are_flagged(text: str) -> None:
    assert {"destructive", "runs-other-code"} & {risk.id for risk in risks_of(asked(text))}


def allowed(text: str, *prefix: str) -> bool:
    rules = Rules(allow=(Rule(name="r", prefix=prefix),))
    return evaluate(asked(text), rules, ()).kind == "allow"


def test_a_rule_may_name_a_runner_and_what_it_runs() -> None:
    assert allowed("uv run pytest -q", "uv", "run", "pytest")
    assert allowed("uv run pytest -q", "uv", "run")
    # the same as `python -m pytest`, which is as wide as Python itself
    assert unwrap(("uv", "run", "-m", "pytest", "-q"), StandardInput()) == Unwrapped(
        commands=(("python", "-m", "pytest", "-q"),), runner=1
    )
    assert allowed("npx eslint src", "npx", "eslint")
    assert allowed("hatch run test -q", "hatch", "run", "test")
    assert not allowed("uv run pytest -q", "uv")
    assert not allowed("uv run rm -rf .", "uv", "run")
    assert not allowed("uv run rm -rf .", "uv", "run", "rm")
    assert allowed("uv run rm -rf .", "uv", "run", "rm", "-rf")
    assert not allowed("uv run bash -c 'touch zz'", "uv", "run")
    assert not allowed("uv run python -c x", "uv", "run", "python")


@each_row(
    "words",
    [
        ("bun", "run"),
        ("deno", "run"),
        ("deno", "eval"),
        ("uv", "run"),
        ("uv", "run", "python"),
        ("poetry", "run", "bash"),
        ("npx", "-y"),
        ("tmux", "new"),
    ],
)
def test_a_runner_without_its_object_can_not_be_remembered(words: tuple[str, ...]) -> None:
    spec = CommandSpec(command=Shell(text=" ".join((*words, "x.ts"))), cwd=ROOT)
    assert scope_problem(PrefixScope(words=words), spec) is not None


@each_row("text", ["uv run pytest -q", "bun run lint", "poetry run ruff check", "npm run build"])
def test_a_runner_with_its_object_can_be_remembered(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    assert scope_problem(PrefixScope(words=tuple(text.split()[:3])), spec) is None
