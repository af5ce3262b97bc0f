"""What nobody was asked about does no harm, even where the list of commands that only look is wrong about it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from math import inf
from pathlib import Path

import pytest

from tests.api.conftest import Harness
from tests.supervisor.engine.test_sandbox import NO_LANDLOCK
from whisper_tui.model.call import SessionHello
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited, TimedOut
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.approvals.expand import literal_text
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.confinement import probe
from whisper_tui.system.state_directory import Directories

pytestmark = pytest.mark.skipif(bool(probe().problem), reason=f"no sandbox here: {probe().problem}")


class Place:
    """A workspace with traps in it, a home beside it, and a supervisor over real keepers."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.workspace, self.home, self.elsewhere = top / "workspace", top / "home", top / "elsewhere"
        for directory in (self.workspace, self.home / ".ssh", self.elsewhere):
            directory.mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text("PRIVATE")
        (self.elsewhere / "mine").write_text("untouched")
        (self.workspace / "data.json").write_text('{"a": 1}\n')
        self.supervisor: Supervisor
        self.harness: Harness

    async def open(self, rules: Rules, settings: SupervisorSettings | None = None, **variables: str) -> None:
        home = Directories(config=self.top / "config", state=self.top / "state", runtime=self.top / "run")
        self.supervisor = Supervisor(home, LocalExecutor(self.top / "state" / "runs"), rules=rules, settings=settings)
        await self.supervisor.open()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C", "API_KEY": "PRIVATE"}
        environment |= variables
        hello = SessionHello(name="agent", root=str(self.workspace), environment=environment)
        self.harness = Harness(self.supervisor, await self.supervisor.open_session(hello))

    async def unasked(self, text: str) -> CallRecord:
        """What becomes of a line that is allowed without a question."""
        call_id = await self.harness.submit(text=text)
        record = await asyncio.wait_for(self.supervisor.outcome(call_id), 60)
        assert record.decided_by is not None
        assert record.decided_by.surface == "rule"
        return record

    async def said(self, record: CallRecord) -> bytes:
        return await self.harness.output(record.id, "out") + await self.harness.output(record.id, "err")

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """All that a command could have changed, state and journal excepted."""
        found = {}
        for directory in (self.workspace, self.home, self.elsewhere):
            for path in sorted(directory.rglob("*")):
                about = path.lstat()
                found[str(path)] = (about.st_mode, path.read_bytes() if path.is_file() else b"")
        return found


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    await made.open(Rules(read_only=True))
    yield made
    await made.supervisor.close()


@pytest.fixture
def no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of commands that only look, as wrong as can be: all that is plain is on it, and nothing is private."""
    monkeypatch.setattr("whisper_tui.policy.rules.matching.only_reads", lambda *_, **__: True)
    monkeypatch.setattr("whisper_tui.policy.evaluate._reads_too_far", lambda *_: False)
    monkeypatch.setattr("whisper_tui.policy.evaluate.names_closed_place", lambda *_: False)
    monkeypatch.setattr("whisper_tui.policy.evaluate.harmless_with_any", lambda *_: True)


def _write_traps(place: Place) -> None:
    """The files that the attacks bring along."""
    pwn = place.elsewhere / "pwn"
    (place.workspace / "evil.sh").write_text(f"touch {pwn}\n")
    (place.workspace / "evil.sh").chmod(0o755)
    (place.workspace / "program.awk").write_text(f'BEGIN {{ system("touch {pwn}") }}\n')
    (place.workspace / "link").symlink_to(place.home / ".ssh" / "id_rsa")
    (place.workspace / "opts").write_text("--plugin ./evil.so")
    bare = place.workspace / "bare"
    for name in ("c/objects", "c/refs", "c/info"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "commondir").write_text("c\n")
    (bare / "c" / "config").write_text(
        f'[core]\n\tfsmonitor = "touch {pwn}"\n[diff "evil"]\n\ttextconv = "touch {pwn}; cat"\n'
    )
    (bare / "c" / "info" / "attributes").write_text("* diff=evil\n")


ATTACKS = (
    """awk '/"/{system("touch PWN")} /"/' data.json""",
    """awk '# "\nBEGIN{system("touch PWN")} # "'""",
    """awk 'BEGIN{print "x" > "PWN"}'""",
    "awk -f program.awk",
    """awk 'BEGIN{ARGV[1]="SECRET";ARGC=2}1'""",
    "sed ':/a/a e touch PWN' data.json",
    "sed -n ':/a/a w PWN' data.json",
    "sed -i s/1/2/ data.json",
    "sed 'p;:/a/a r SECRET' data.json",
    "test -n -- -a -v 'a[$''(touch PWN)]'",
    "bash --rcfile ./evil.sh -ic ls",
    "bash ./evil.sh",
    "git -C bare show",
    "git config --global core.pager touch --get",
    "git config core.fsmonitor touch --get",
    "nm @opts",
    "openssl x509 -in org.openssl.engine:./evil.so:x -noout",
    "cat SECRET link ../home/.ssh/id_rsa",
    "grep -r '' ../home",
    "find .. -name id_rsa -exec cat {} +",
    "find . -delete",
    'jq -n \'import "id_rsa" as $d {search:"../home/.ssh"}; $d\'',
    "sort -o PWN data.json",
    "sort --files0-from=link",
    "tee PWN",
    "cp data.json PWN",
    "ln -s /etc PWN",
    "mkdir PWN",
    "rm -rf ../elsewhere ../home ../workspace",
    "mv ../elsewhere ../gone",
    "chmod 777 ../home/.ssh ../elsewhere/mine",
    "touch -d 2001-01-01 ../elsewhere/mine",
    "truncate -s 0 ../elsewhere/mine",
    "dd if=SECRET of=PWN",
    "printenv API_KEY",
    "env",
    "ps axeww",
    'python3 -c \'open("PWN","w")\'',
    'perl -e \'open(F,">PWN");system("touch PWN");print `cat SECRET`\'',
    "cat ../home/.ssh/* *",
    'for f in ../home/.ssh/* link; do cat "$f"; done',
    "s=SECRET; cat $s; tee PWN",
    "rm -rf ../{elsewhere,home}/*",
    "touch ../elsewhere/{a,b} ../elsewhere/m*",
    "cat /proc/*/environ",
)


@pytest.mark.slow
@pytest.mark.usefixtures("no_list")
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.few(6)
async def test_the_sandbox_alone_is_enough(place: Place, attack: str) -> None:
    _write_traps(place)
    before = place.tree()
    text = attack.replace("PWN", str(place.elsewhere / "pwn")).replace("SECRET", str(place.home / ".ssh" / "id_rsa"))
    if shutil.which(text.split()[0]) is None:
        pytest.skip(f"{text.split()[0]} is not on this machine")
    call_id = await place.harness.submit(text=text)
    record = await place.supervisor.record(call_id)
    if record.state.kind == "waiting":
        assert place.tree() == before
        return  # Its text is not plain, so no list was even consulted.
    record = await asyncio.wait_for(place.supervisor.outcome(call_id), 60)
    assert record.sandbox == Sandbox(kind="read-only")
    assert b"PRIVATE" not in await place.said(record)
    assert place.tree() == before


async def test_expansions_that_are_certain_run_unasked_in_the_sandbox(place: Place) -> None:
    (place.workspace / "x y.json").write_text("1\n2\n")
    record = await place.unasked('n=2; for f in *.json; do wc -l "$f"; done; head -n $n {data,none}.js*')
    assert record.sandbox == Sandbox(kind="read-only")
    said = (await place.said(record)).decode()
    assert "1 data.json\n2 x y.json\n" in said
    assert "==> data.json <==" in said


@pytest.mark.parametrize(
    "text",
    [
        "ls | xargs wc -c",
        "find . -name '*.json' -print0 | xargs -0 -I{} head -n 1 {}",
        "find . -type f -exec grep -c a {} +",
        "wc -l < data.json",
        "if test -f data.json; then cat data.json; else pwd; fi",
        'while IFS= read -r line; do echo "[$line]"; done < data.json',
        'ls | while read f; do wc -l < "$f"; done',
        "diff <(cat data.json) <(echo x); comm -12 <(ls) <(ls)",
        'echo "$(cat data.json)" `ls`',
        'n=$(wc -l < data.json); [ "$n" -eq 1 ] && echo "$n line"',
        "(cd sub && ls; pwd) | sort; { ls; echo $?; }",
        "env A=1 ls -1; sh -c 'ls | head -2'; LC_ALL=C sort data.json",
        "gzip -c data.json | gzip -dc; sed -e s/a/b/ -e s/1/2/ data.json",
        "grep -Rn a . | sort",
        "echo $PATH $VIRTUAL_ENV $PWD",
    ],
)
@pytest.mark.few(5)
async def test_what_runs_unasked_prints_what_bash_prints(place: Place, text: str) -> None:
    (place.workspace / "sub").mkdir()
    (place.workspace / "sub" / "more.json").write_text("a\n")
    environment = {"PATH": "/usr/bin:/bin:/opt/made-up", "VIRTUAL_ENV": "/opt/venv", "LC_ALL": "C"}
    await place.open(Rules(read_only=True), **environment)
    plain = subprocess.run(
        ["bash", "-c", text], cwd=place.workspace, env=environment, capture_output=True, check=False, text=True
    )
    record = await place.unasked(text)
    assert record.sandbox == Sandbox(kind="read-only")
    assert record.blocked is None
    assert (await place.harness.output(record.id, "out")).decode() == plain.stdout
    assert (await place.harness.output(record.id, "err")).decode() == plain.stderr
    assert plain.stdout


@pytest.mark.skipif(shutil.which("npm", path="/usr/bin") is None, reason="npm is not installed with the system")
@pytest.mark.parametrize("text", ["npm ls --depth=0", "npm ls --json", "npm --version"])
async def test_npm_lists_what_is_installed_and_asks_no_server(place: Place, text: str) -> None:
    (place.workspace / "package.json").write_text('{"name": "x", "version": "1.0.0", "dependencies": {"y": "1"}}')
    (place.workspace / ".npmrc").write_text("registry=http://127.0.0.1:9/\nonload-script=./x.js\nlogs-dir=logs\n")
    (place.workspace / "x.js").write_text("console.log('loaded')")
    installed = place.workspace / "node_modules" / "y"
    installed.mkdir(parents=True)
    (installed / "package.json").write_text('{"name": "y", "version": "1.2.3", "scripts": {"install": "echo loaded"}}')
    before = place.tree()
    record = await place.unasked(text)
    said = (await place.said(record)).decode()
    assert "1.2.3" in said or text == "npm --version"
    assert "loaded" not in said
    assert record.blocked is None
    assert record.state.ending == Exited(code=0)
    assert place.tree() == before


async def test_names_of_secret_files_are_shown_and_nothing_in_them(place: Place) -> None:
    record = await place.unasked(f"ls -la {place.home}/.ssh {place.top}/elsewhere 2>/dev/null; test -f .env; pwd")
    assert record.blocked is None
    said = await place.said(record)
    assert b"id_rsa" in said
    assert b"mine" in said
    assert b"PRIVATE" not in said


@pytest.mark.parametrize(
    "text",
    [
        "xargs cat < list",
        "cat $(cat list)",
        'while read f; do cat "$f"; done < list',
        "cat list | xargs -I{} head {}",
        "grep -R PRIVATE .",
        "find . -exec cat {} +",
    ],
)
async def test_names_that_are_known_too_late_show_nothing(place: Place, text: str) -> None:
    secret = place.home / ".ssh" / "id_rsa"
    (place.workspace / "list").write_text(f"{secret}\n")
    (place.workspace / "link").symlink_to(secret)
    before = place.tree()
    assert b"PRIVATE" not in await place.said(await place.unasked(text))
    assert place.tree() == before


async def test_a_link_that_appears_behind_a_pattern_after_the_judgement_shows_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged_before(*arguments: object) -> str | None:
        literal = literal_text(*arguments)
        if literal is not None and not (place.workspace / "late").exists():
            (place.workspace / "late").symlink_to(place.home / ".ssh" / "id_rsa")
        return literal

    monkeypatch.setattr("whisper_tui.supervisor.approvals.resolve.literal_text", judged_before)
    # Without the last look before the start, the file is there when bash looks, and the judgement did not see it.
    monkeypatch.setattr("whisper_tui.supervisor.approvals.judge.Judge.judge_again", lambda *_: None)
    record = await place.unasked("cat [dl]*")
    assert (place.workspace / "late").is_symlink()
    said = await place.said(record)
    assert b'{"a": 1}' in said
    assert b"late" in said
    assert b"PRIVATE" not in said


async def test_a_blocked_command_is_recorded_and_asked_the_next_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whisper_tui.policy.rules.matching.only_reads", lambda *_, **__: True)
    path = place.elsewhere / "pwn"
    first = await place.unasked(f"touch {path}")
    assert first.blocked is not None
    assert first.blocked.words() == f"tried to write {path}"
    again = await place.harness.until(await place.harness.submit(text=f"touch {path}"), "waiting")
    assert again.verdict is not None
    assert "was blocked in the sandbox" in again.verdict.reason
    await place.harness.decide(again.id, Approve())
    assert (await place.supervisor.outcome(again.id)).blocked is None
    assert path.exists()


async def test_a_rule_without_a_word_about_it_is_read_only_and_one_with_a_word_is_not(tmp_path: Path) -> None:
    made = Place(tmp_path)
    closed = Rule(name="closed", prefix=("touch", "a"))
    within = Rule(name="within", prefix=("touch", "b"), sandbox="workspace")
    free = Rule(name="free", prefix=("touch", str(made.elsewhere / "c")), sandbox=False)
    await made.open(Rules(allow=(closed, within, free)))
    try:
        assert (await made.unasked("touch a")).sandbox == Sandbox(kind="read-only")
        assert (await made.unasked("touch b")).sandbox == Sandbox(kind="workspace")
        assert (await made.unasked(f"touch {made.elsewhere / 'c'}")).sandbox is None
    finally:
        await made.supervisor.close()
    assert not (made.workspace / "a").exists()
    assert (made.workspace / "b").exists()
    assert (made.elsewhere / "c").exists()


async def test_tools_in_a_sandbox_have_caches_of_their_own(tmp_path: Path) -> None:
    made = Place(tmp_path)
    (made.workspace / "t.sh").write_text(
        'for directory in "$XDG_CACHE_HOME" "$npm_config_cache" "$CARGO_HOME" "$GOPATH"; do\n'
        'mkdir -p "$directory/sub" && touch "$directory/sub/file" && echo "$directory"\ndone\n'
    )
    within = Rule(name="within", prefix=("/bin/sh", "t.sh"), sandbox="workspace")
    cargo = str(made.workspace / "cargo")
    await made.open(Rules(allow=(within,)), CARGO_HOME=cargo)
    before = made.tree()
    try:
        record = await made.unasked("/bin/sh t.sh")
        caches = (await made.said(record)).decode().splitlines()
    finally:
        await made.supervisor.close()
    # what lies in the workspace is the project's own
    assert caches[2] == cargo
    assert len(caches) == 4
    assert not [path for path in (caches[0], caches[1], caches[3]) if path.startswith(str(made.home))]
    assert not [path for path in caches if path != cargo and Path(path).exists()]
    assert {path for path in made.tree() if path not in before} == {cargo, f"{cargo}/sub", f"{cargo}/sub/file"}


async def test_a_human_may_approve_into_a_sandbox(place: Place) -> None:
    call_id = await place.harness.submit(text=f"touch made; touch {place.elsewhere / 'made'}")
    await place.harness.decide(call_id, Approve(sandbox=Sandbox(kind="workspace")))
    record = await place.supervisor.outcome(call_id)
    assert (place.workspace / "made").exists()
    assert not (place.elsewhere / "made").exists()
    assert record.blocked is not None


@pytest.mark.parametrize("sandbox", [Sandbox(), Sandbox(kind="workspace"), Sandbox(kind="workspace", network=True)])
async def test_a_binary_of_a_home_runs_in_the_sandbox_into_which_it_is_approved(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    made = Place(tmp_path)
    tools = made.home / ".local" / "bin"
    tools.mkdir(parents=True)
    for name in ("show", "beside"):
        shutil.copy("/bin/cat", tools / name)
    (tools / "show").chmod(0o755)
    (tools / "beside").chmod(0o777)  # others can change it
    await made.open(Rules(), PATH=f"{tools}:/usr/bin:/bin")
    try:
        calls = [await made.harness.submit(text=f"{name} data.json") for name in ("show", "beside")]
        for call_id in calls:
            await made.harness.decide(call_id, Approve(sandbox=sandbox))
        shown, refused = [await made.supervisor.outcome(call_id) for call_id in calls]
        assert await made.said(shown) == b'{"a": 1}\n'
        assert shown.sandbox is not None and shown.sandbox.programs == (str(tools / "show"),)
        assert refused.blocked is not None and refused.sandbox == sandbox
    finally:
        await made.supervisor.close()


async def test_an_unasked_command_has_an_environment_from_an_allow_list(place: Place) -> None:
    record = await place.unasked("cat /dev/null")
    spec = json.loads((place.top / "state" / "runs" / f"{record.id}.1" / "spec").read_text())
    assert spec["sandbox"]["write"] == []
    order = place.supervisor._parts.pool._orders.of(record)  # what a keeper is given is written nowhere
    assert set(order.environment) >= {"PATH", "HOME", "LC_ALL", "WHISPER_TUI"}
    assert "API_KEY" not in order.environment
    assert str(place.home) not in order.environment.values()


class TestBounds:
    """Nobody has agreed that a command of the built-in list goes on for ever, or fills the disk."""

    @pytest.mark.slow
    async def test_commands_that_never_end_hold_another_session_up_for_no_longer_than_their_limit(
        self, tmp_path: Path
    ) -> None:
        made = Place(tmp_path)
        await made.open(Rules(read_only=True), SupervisorSettings(workers=2, unasked_timeout_s=5))
        try:
            endless = [await made.harness.submit(text="sleep infinity", timeout_s=3600) for _ in range(2)]
            other = SessionHello(name="another", root=str(made.workspace), environment={"PATH": "/usr/bin:/bin"})
            made.harness = Harness(made.supervisor, await made.supervisor.open_session(other))
            assert (await made.unasked("ls")).state.ending == Exited(code=0)
            for call_id in endless:
                record = await made.supervisor.outcome(call_id)
                assert record.state.ending == TimedOut(after_s=5)
        finally:
            await made.supervisor.close()

    async def test_only_the_head_and_the_tail_of_endless_output_are_kept(self, tmp_path: Path) -> None:
        made = Place(tmp_path)
        await made.open(Rules(read_only=True), SupervisorSettings(unasked_output_bytes=65_536))
        try:
            (made.workspace / "long").write_bytes(b"x" * 10_000_000)
            record = await made.unasked("cat long")
            assert isinstance(record.state, Ended)
            assert record.state.output.out == 10_000_000
            kept = made.top / "state" / "runs" / f"{record.id}.1"
            assert sum(path.stat().st_size for path in kept.glob("out*")) < 1_000_000
        finally:
            await made.supervisor.close()

    async def test_a_time_that_the_agent_gave_itself_and_is_shorter_counts(self, place: Place) -> None:
        call_id = await place.harness.submit(text="sleep infinity", timeout_s=0.2)
        assert (await place.supervisor.outcome(call_id)).state.ending == TimedOut(after_s=0.2)

    @pytest.mark.slow
    async def test_commands_of_rules_and_approvals_have_no_time_limit(self, tmp_path: Path) -> None:
        made = Place(tmp_path)
        allow = Rule(name="tests", prefix=("sleep", "2"))
        settings = SupervisorSettings(unasked_timeout_s=0.5, unasked_output_bytes=65_536)
        await made.open(Rules(allow=(allow,), read_only=False), settings)
        try:
            assert (await made.unasked("sleep 2")).state.ending == Exited(code=0)
            assert (await made.harness.run(text="sleep 1; touch made")).state.ending == Exited(code=0)
        finally:
            await made.supervisor.close()

    async def test_without_limits_only_those_of_every_command_hold(self, tmp_path: Path) -> None:
        made = Place(tmp_path)
        free = SupervisorSettings(unasked_timeout_s=inf, unasked_output_bytes=None, max_output_bytes=2**20)
        await made.open(Rules(read_only=True), free)
        try:
            order = made.supervisor._parts.pool._orders.of(await made.unasked("ls"))
            assert (order.spec.timeout_s, order.max_output_bytes) == (None, 2**20)
        finally:
            await made.supervisor.close()


ASKED = [
    *(attack.replace("PWN", "/tmp/pwn").replace("SECRET", "/root/.ssh/id_rsa") for attack in ATTACKS),
    "grep -rn x .",
    "find . -name x",
    "git status",
    "rg x",
]


@pytest.mark.slow
def test_without_landlock_only_plain_read_only_commands_run_unasked(tmp_path: Path) -> None:
    number = {"x86_64": "317", "aarch64": "277"}[os.uname().machine]
    text = NO_LANDLOCK + (
        "import json, os\n"
        "from whisper_tui.model.call import CommandSpec, Shell\n"
        "from whisper_tui.policy.rules import matching\n"
        "from whisper_tui.policy.rules.rule import Rules\n"
        "from whisper_tui.supervisor.approvals.judge import judge_alone\n"
        "matching.only_reads = lambda *_, **__: True\n"
        "def kind(text):\n"
        "    spec = CommandSpec(command=Shell(text=text), cwd=sys.argv[2])\n"
        "    verdict, _ = judge_alone(spec, Rules(read_only=True), dict(os.environ), root=sys.argv[2], now=0.0)\n"
        "    return verdict.kind\n"
        "print(json.dumps([kind(text) for text in json.load(sys.stdin)]))\n"
    )
    plain = ["ls -l", "cat data.json", "head -1 data.json | wc -l", "pwd"]
    done = subprocess.run(
        [sys.executable, "-c", text, number, str(tmp_path)],
        input=json.dumps([*ASKED, *plain]),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    kinds = dict(zip([*ASKED, *plain], json.loads(done.stdout), strict=True))
    assert {text for text, kind in kinds.items() if kind == "allow"} <= {
        *plain,
        *(a for a in ASKED if a.startswith(("cat ", "grep "))),
    }
    assert {kinds[text] for text in plain} == {"allow"}
