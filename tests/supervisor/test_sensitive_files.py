"""Files that decide what runs later, or who may decide: found behind links and wrappers, and always asked."""

from pathlib import Path

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.approvals.resolve import resolve


@pytest.fixture
def found(tmp_path: Path):
    home, workspace, own = tmp_path / "home", tmp_path / "ws", tmp_path / "own"
    for directory in (home / ".ssh", workspace / ".git" / "hooks", workspace / "sub", own / "config", own / "runs"):
        directory.mkdir(parents=True)
    (workspace / "link").symlink_to(home / ".bashrc")
    (workspace / "own").symlink_to(own)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "OWN": str(own)}

    def look(text: str) -> list[str]:
        spec = CommandSpec(command=Shell(text=text), cwd=str(workspace))
        return sorted(set(resolve(spec, environment, (str(own),)).sensitive.values()))

    look.workspace, look.own = workspace, own  # type: ignore[attr-defined]
    return look


START_UP = ["a start-up file"]
OWN = ["the configuration or the state of whisper_tui"]
AGENT = ["the settings of an agent"]
GIT = ["hooks or settings of git"]
SSH = ["keys or settings of ssh"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo x > ~/.bashrc", START_UP),
        ("/usr/bin/time -f 'any text' -o ~/.bashrc ls", START_UP),
        ("strace -o ~/.bashrc ls", START_UP),
        ("ltrace -o ~/.bashrc ls", START_UP),
        ("timeout 5 strace -o~/.bashrc ls", START_UP),
        ("valgrind --log-file=$HOME/.bashrc ls", START_UP),
        ("fakeroot -s ~/.bashrc ls", START_UP),
        ("xvfb-run -e ~/.bashrc ls", START_UP),
        ("daemonize -o ~/.bashrc /bin/ls", START_UP),
        ("script -qc 'echo x' ~/.bashrc", START_UP),
        ("flock ~/.bashrc ls", START_UP),
        ("curl --output-dir ~ -o .bashrc http://h/x", START_UP),
        ("wget -P ~ -O .bashrc http://h/x", START_UP),
        ("wget --directory-prefix=$HOME -O .bashrc http://h/x", START_UP),
        ("patch -d ~ -i x", ["a directory that holds start-up files or settings"]),
        ("git clone x ~/.config/fish", ["a directory that holds start-up files or settings"]),
        ("tar -xf x -C ~/.ssh", ["a directory that holds start-up files or settings"]),
        ("cp x ~root/.bashrc", START_UP),
        ("cp x ~someone/.bashrc", START_UP),
        ("echo x > ~root/.bashrc", START_UP),
        ("cp x ~+/../home/.bashrc", START_UP),
        ("cp x /proc/self/cwd/../home/.bashrc", START_UP),
        ("echo x | tee /proc/thread-self/cwd/../home/.bashrc", START_UP),
        ("echo x >> $HOME/.profile", START_UP),
        ("echo x > link", START_UP),
        ("cp evil ~/.zshrc", START_UP),
        ("cp .bashrc ~/", START_UP),
        ("cp -t ~ .bashrc", START_UP),
        ("mv x ~/.bash_profile", START_UP),
        ("ln -sf x ~/.bashrc", START_UP),
        ("install -m 644 x ~/.bashrc", START_UP),
        ("echo x | tee -a ~/.bashrc", START_UP),
        ("dd if=x of=/root/.bashrc", START_UP),
        ("sed -i s/a/b/ ~/.bashrc", START_UP),
        ("sudo tee /etc/profile.d/x.sh", START_UP),
        ("cd ~ && echo x > .bashrc", START_UP),
        ("cd; echo x > .bashrc", START_UP),
        ("for i in 1; do echo x; done > ~/.bashrc", START_UP),
        ("bash -c 'echo x > ~/.bashrc'", START_UP),
        ("sudo cp x ~/.bashrc", START_UP),
        ('python3 -c \'open("/root/.bashrc", "w")\'', START_UP),
        ("python3 - <<'E'\nopen(\"~/.bashrc\")\nE", START_UP),
        ("echo x > /etc/cron.d/x", START_UP),
        ("cp x ~/.config/systemd/user/x.service", START_UP),
        ("echo x > .claude/settings.local.json", AGENT),
        ("jq . a > ~/.claude/settings.json", AGENT),
        ("sed -i s/a/b/ ~/.codex/config.toml", AGENT),
        ("cp x .gemini/settings.json", AGENT),
        ("tee opencode.json", AGENT),
        ("rm -rf ~/.claude", AGENT),
        ("echo x > .git/hooks/pre-commit", GIT),
        ("cp x .git/hooks/", GIT),
        ("chmod +x .git/hooks/pre-commit", GIT),
        ("echo x >> ~/.ssh/authorized_keys", SSH),
        ("echo x > .whisper-tui/rules.toml", OWN),
        ("printf x > $OWN/config/rules.toml", OWN),
        ("printf x > own/config/rules.toml", OWN),
        ("rm -rf $OWN", OWN),
        ("sqlite3 own/journal.sqlite", OWN),
        ("cat own/config/http-token", OWN),
        ("ln -s $OWN x", OWN),
        ("tar -C / -xf a.tar", ["a directory that holds start-up files or settings"]),
        ("unzip -o -d ~ a.zip", ["a directory that holds start-up files or settings"]),
        ("rsync -a x/ ~/", ["a directory that holds start-up files or settings"]),
    ],
)
def test_a_file_that_decides_is_found(found, text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "cat ~/.bashrc",
        "cp ~/.bashrc backup",
        "grep -r x ~/.claude/settings.json",
        "git add .claude/settings.json",
        "git diff .git/hooks",
        "sed -n 1p ~/.bashrc",
        "source ~/.bashrc",
        "ssh -i ~/.ssh/id_rsa host",
        "ls .git/hooks",
        "echo x > bashrc",
        "cp a sub/.bashrc",
        "find ~ -name .bashrc",
        "tar xf a.tar -C sub",
        "cat own/runs/1.1/out",
        "make test > build.log",
        "echo '~/.bashrc'",
        "cat > notes <<'E'\nedit ~/.bashrc\nE",
    ],
)
def test_reading_a_sensitive_file_and_other_files_are_not_flagged(found, text: str) -> None:
    assert found(text) == []


def test_the_words_of_a_call_without_a_shell_count_as_they_are(found, tmp_path: Path) -> None:
    spec = CommandSpec(command=Argv(program="cp", args=("x", str(tmp_path / "home/.bashrc"))), cwd=str(tmp_path))
    assert list(resolve(spec, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}).sensitive.values()) == START_UP


async def test_no_rule_allows_it_and_the_sentence_names_the_file(bench: Bench) -> None:
    await bench.restart(Rules(allow=(Rule(name="everything", anything=True, redirections=True),)))
    session = await bench.session(environment={"PATH": "/usr/bin:/bin", "HOME": str(bench.workspace)})
    rules = bench.home.config / "rules.toml"
    record = await bench.record(await bench.submit(session, text=f"echo x > {rules}"))
    assert record.state.kind == "waiting" and record.verdict is not None
    assert record.verdict.reason.startswith(
        "May change the configuration or the state of whisper_tui, and with it what runs later"
    )
    assert record.verdict.reason.endswith(str(rules))
    assert "sensitive-write" in [risk.id for risk in record.verdict.risks]
    record = await bench.record(await bench.submit(session, text="echo x > notes"))
    assert record.verdict is not None and record.verdict.kind == "allow"
