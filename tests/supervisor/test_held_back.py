"""Commands that run unasked by their effects: held back in a view of the files until it is known what they change."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import PATIENCE_S, LiveBench
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Waiting
from whisper_tui.model.verdict import HELD_BACK_RULE
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.runs import attempt_ways, held_back
from whisper_tui.supervisor.runs.held_back import personal_places
from whisper_tui.tools.agent_text import agent_note

pytestmark = needs_overlays

WORKSPACE = Rules().at("workspace")
GIT = "git -c user.name=n -c user.email=n@example.org"
REPOSITORY = f"""
git init -q -b main . && echo one > kept.txt && git add -A && {GIT} commit -qm one
echo two > kept.txt && {GIT} commit -qam two && git branch other && git tag v0
"""


async def made_by(text: str, directory: Path) -> None:
    """Run a line for real, as the state of a test needs it."""
    process = await asyncio.create_subprocess_exec("bash", "-ec", text, cwd=directory)
    assert await process.wait() == 0


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    await made_by(REPOSITORY, made.workspace)
    await made.open(WORKSPACE)
    yield made
    await made.supervisor.close()


async def waits_because(live: LiveBench, text: str) -> str:
    """Why a human is asked after a command has been held back."""
    call_id = await live.asked(text)
    report = await live.report(call_id)
    record = await live.record(call_id)
    assert isinstance(record.state, Waiting) and record.decision is None
    assert call_id in live.supervisor.board.waiting
    return "; ".join(report.beyond_rule)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("mkdir -p build && touch build/out.txt", {"build/out.txt": ""}),
        ("cp kept.txt other.txt", {"other.txt": "two\n"}),
        ("sed -i s/two/three/ kept.txt", {"kept.txt": "three\n"}),
        ("python3 -c \"open('made', 'w').write('x')\"", {"made": "x"}),
        ("for each in a b; do\n  echo $(echo $each) > $each\ndone", {"a": "a\n", "b": "b\n"}),
        ("F=made; echo x > $F", {"made": "x\n"}),
        ("rm kept.txt", {}),
    ],
)
@pytest.mark.few(3)
async def test_ordinary_changes_of_the_workspace_become_real_unasked_and_are_taken_back(
    live: LiveBench, text: str, files: dict[str, str]
) -> None:
    before = live.files()
    call_id = await live.asked(text)
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert record.decided_by is not None and (record.decided_by.surface, record.decided_by.who) == (
        "rule",
        HELD_BACK_RULE,
    )
    found = {path: text for path, text in live.files().items() if not path.startswith(".git/")}
    assert found == ({"kept.txt": "two\n"} if "rm" not in text else {}) | files
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == before


async def test_a_command_that_fails_has_changed_what_it_has_changed(live: LiveBench) -> None:
    record = await live.over(await live.asked("echo x > made; exit 3"))
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=3)
    assert live.files()["made"] == "x\n"
    assert "exactly the file changes" in (agent_note(record) or "")


async def test_what_that_means_is_told_once_in_a_session(live: LiveBench) -> None:
    session, other, records = await live.session(), await live.session(), []
    for each in (session, session, other):
        records.append(await live.over(await live.submit(each, text="echo x >> made")))
    whole, again, elsewhere = map(agent_note, records)
    assert whole == elsewhere and "without network, and exactly the file changes" in (whole or "")
    assert again == "It ran in a preview as well, and its file changes are real."
    await live.restart(WORKSPACE)
    assert agent_note(await live.record(records[1].id)) == again


async def test_the_agents_shell_goes_on_where_a_command_has_ended_that_was_held_back(live: LiveBench) -> None:
    spec = CommandSpec(command=Shell(text="mkdir -p a/b && cd a/b"), cwd=str(live.workspace))
    request = CallRequest(
        session_id=await live.session(), tool="Bash", arguments={}, spec=spec, ticket="secret", follows=True
    )
    call_id = await live.supervisor.submit(request)
    await live.until(call_id, lambda record: isinstance(record.state, Held))
    await live.supervisor.claim(call_id, "secret", Claim(by="one", follows=True))
    record = await live.over(call_id)
    assert not record.decided_by_human
    assert live.supervisor.queries.last_directory(record.id) == str(live.workspace / "a" / "b")


@pytest.mark.parametrize(
    "text",
    [
        f"echo x > new && git add -A && {GIT} commit -qm three",
        "git checkout -q -b fix",
        "git switch -q other",
        "git tag v1",
        f"echo x >> kept.txt; {GIT} stash -q",
        "git status --short",
        f"git checkout -q -b side HEAD~1; echo y > y; git add y; {GIT} commit -qm side; {GIT} merge -q -m merged main",
    ],
)
@pytest.mark.few(2)
async def test_commits_on_a_branch_are_ordinary_work(live: LiveBench, text: str) -> None:
    call_id = await live.asked(text)
    record = await live.over(call_id)
    assert not record.decided_by_human
    await made_by("git fsck --no-progress", live.workspace)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo x > Makefile", "a build file"),
        ("echo x > CLAUDE.md", "agents"),
        ("python3 -c \"open('.git/ho' + 'oks/pre-commit', 'w')\"", "hooks"),
        ("git config user.name x", "hooks or settings of git"),
        ("python3 -c \"import os; open('s', 'w'); os.chmod('s', 0o4755)\"", "rights of its owner"),
        ("python3 -c \"import os; os.symlink('/usr/share', 'l')\"", "/usr/share, where the rule permits no writes"),
        ("ln -s ../../elsewhere l", "elsewhere, where the rule permits no writes"),
        ("mkfifo f", "other programs can wait for it"),
        ("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 9), 1)\"", "192.0.2.1:9"),
        ("python3 -c \"import subprocess as s; s.Popen(['sleep', '600'])\"", "sleep 600"),
        (f"{GIT} commit -q --amend -m other", "would lose commits"),
        ("python3 -c \"import os; os.system('git reset -q --soft HEAD~1')\"", "would lose commits"),
        ("python3 -c \"import os; os.system('git update-ref -d refs/heads/other')\"", "deletes other"),
        ("python3 -c \"import os; os.system('git tag -f v0 HEAD~1')\"", "moves tags/v0"),
        ("python3 -c \"import os; os.system('git update-ref refs/remotes/origin/main HEAD')\"", "no branch or tag"),
        (
            "python3 -c \"import os; os.system('git pack-refs --all && git update-ref -d refs/heads/other')\"",
            "deletes other",
        ),
        ("python3 -c \"import os; os.system('git reflog expire --expire=now --all')\"", "log of a branch"),
        ("python3 -c \"import os; os.system('git gc -q --prune=now')\"", "packs or removes objects"),
        ("python3 -c \"open('.git/refs/heads/main', 'w').write('0' * 40)\"", "would lose commits"),
        ("python3 -c \"import os; p = '.git/refs/heads/other'; os.unlink(p); os.mkdir(p)\"", "would be no file"),
        (
            "python3 -c \"import os; p = '.git/refs/heads/main'; os.rename(p, '.git/gc.log'); os.symlink('m', p)\"",
            "no file",
        ),
        ("python3 -c \"import os; os.unlink('.g' + 'it/HEAD')\"", "HEAD would name no branch"),
        ("python3 -c \"import os; os.chmod('.g' + 'it/HEAD', 0)\"", "who may read or write HEAD"),
        (
            "python3 -c \"import os; d = '.g' + 'it/rebase-merge'; os.mkdir(d); "
            "open(d + '/git-rebase-todo', 'w').write('exec true')\"",
            "rebase-merge/git-rebase-todo",
        ),
        (
            "python3 -c \"import os; os.makedirs('src/refs'); open('src/HEAD', 'w')\"",
            "src/HEAD is a part of a repository",
        ),
        ("python3 -c \"open('held/config', 'w')\"", "held/config is a part of a repository of git"),
        ("python3 -c \"open('held/hooks/pre-push', 'w')\"", "is a part of a repository of git"),
        ("python3 -c \"open('shared/pre-commit', 'w')\"", "shared/pre-commit is a hook of git"),
    ],
)
@pytest.mark.few(4)
async def test_other_changes_wait_for_a_human_with_their_preview(live: LiveBench, text: str, why: str) -> None:
    await made_by("mkdir -p held/hooks shared && touch held/HEAD && git config core.hooksPath shared", live.workspace)
    before = live.files()
    assert why in await waits_because(live, text)
    assert live.files() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("python3 -c \"import os; os.chmod('kept.txt', 0o777)\"", "kept.txt: more users may read it or write to it"),
        ("python3 -c \"import os; os.chmod('kept.txt', 0o664)\"; echo x >> kept.txt", "kept.txt: more users may"),
        ("chmod o+r private", "private: more users may read it or write to it"),
        ("chmod go+x closed", "closed: more users may read it or write to it"),
        ("mv private other && chmod 644 other", "other: more users may read it or write to it"),
        ("cat private > other && mv -f other private", "private: more users may read it or write to it"),
        ("umask 0; touch x", "x: anybody may write to it"),
        ("mkdir -p made/x && chmod 1777 made/x", "made/x: anybody may write to it"),
        ("umask 0; rm led && touch led", "led: anybody may write to it"),
    ],
)
@pytest.mark.few(3)
async def test_files_that_more_users_may_read_or_change_wait_for_a_human(live: LiveBench, text: str, why: str) -> None:
    made = "umask 022; touch private; chmod 600 private; chmod 644 kept.txt; mkdir -m 700 closed; ln -s kept.txt led"
    await made_by(f"{made}; echo secret of one user > private", live.workspace)
    assert why in await waits_because(live, f"umask 022; {text}")


@pytest.mark.parametrize(
    "text",
    [
        "chown 1234 kept.txt",
        "chgrp 1234 kept.txt",
        "echo x >> kept.txt; chown 1234:1234 kept.txt",
        "touch new; chown 1234 new",
        "mkdir -p made; touch made/new; chgrp 1234 made/new",
        "cp kept.txt new; chown 1234 new; mv new kept.txt",
        "chown 1234 theirs",
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.few(3)
async def test_files_that_change_hands_wait_for_a_human(live: LiveBench, text: str) -> None:
    await made_by("mkdir theirs && chown 1000:1000 theirs", live.workspace)
    assert "its owner or group is another one" in await waits_because(live, text)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works in directories of others")
async def test_work_of_root_on_files_of_others_changes_no_owner(live: LiveBench) -> None:
    await made_by("mkdir -p theirs/d && echo x > theirs/f && chown -R 1000:1000 theirs", live.workspace)
    text = "cd theirs; echo y >> f; cp -p f g; mv d e; cp f n && mv n f; mv g e/g; touch new; chmod +x new; chmod 600 f"
    record = await live.over(await live.asked(text))
    assert record.applies, await live.output(record.id)


@pytest.mark.parametrize("name", ["kept.txt", "new", "made/x"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give capabilities to a file")
async def test_files_that_get_capabilities_wait_for_a_human(live: LiveBench, name: str) -> None:
    value = "bytes.fromhex('0100000280000000000000000000000000000000')"
    made = f"os.makedirs('made', exist_ok=True); open('{name}', 'a')"
    give = f"{made}; os.setxattr('{name}', 'security.capability', {value})"
    try:
        await made_by(f'cd .git && python3 -c "import os; {give}"', live.workspace)
    except AssertionError:
        pytest.skip("this root, or this file system, cannot give them")
    assert f"{name}: it runs with rights of root" in await waits_because(live, f'python3 -c "import os; {give}"')


async def test_deletions_are_bounded_by_what_the_rules_say(live: LiveBench) -> None:
    for number in range(5):
        (live.workspace / f"f{number}").touch()
    await live.restart(WORKSPACE.model_copy(update={"deletes": 4}))
    assert "deletes 5" in await waits_because(live, "rm f?")
    record = await live.over(await live.asked("rm f0 f1 f2 f3"))
    assert record.applies


async def test_files_outside_the_workspace_wait_for_a_human(live: LiveBench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    assert "outside, where the rule permits no writes" in await waits_because(live, f"F={outside}; echo x > $F")
    assert not outside.exists()


@pytest.mark.parametrize(
    "text",
    [
        "sudo -n true",
        "env | sort",
        "cat .env",
        "npm run dev",
        "sleep 5 &",
        "curl http://127.0.0.1:9/",
        "git reset --hard",
    ],
)
async def test_what_cannot_be_held_back_is_asked_about_at_once(live: LiveBench, text: str) -> None:
    record = await live.record(await live.asked(text))
    assert isinstance(record.state, Waiting) and record.preview is None and not record.is_held_back


async def test_rules_that_ask_or_deny_stand_above_it(live: LiveBench) -> None:
    asks, denies = Rule(name="asked", program="touch"), Rule(name="denied", prefix=("mkdir", "no"))
    await live.restart(WORKSPACE.model_copy(update={"ask": (asks,), "deny": (denies,)}))
    record = await live.record(await live.asked("touch x"))
    assert isinstance(record.state, Waiting) and not record.is_held_back
    record = await live.record(await live.asked("mkdir no"))
    assert isinstance(record.state, Ended)
    record = await live.record(await live.asked('python3 -c "x" "mkdir no"'))
    assert isinstance(record.state, Waiting) and not record.is_held_back


@pytest.mark.parametrize("effect", ["ask", "deny"])
async def test_files_whose_edits_a_rule_is_about_wait_for_a_human(live: LiveBench, effect: str) -> None:
    await made_by("mkdir migrations", live.workspace)
    await live.restart(WORKSPACE.model_copy(update={effect: (Rule(name="r", path="migrations/**"),)}))
    assert "a rule asks about edits of it" in await waits_because(live, "python3 -c \"open('migrations/1', 'w')\"")
    assert (await live.over(await live.asked("python3 -c \"open('other', 'w')\""))).applies


async def test_nobody_is_asked_while_it_is_held_back(live: LiveBench) -> None:
    await made_by("mkfifo go", live.workspace)
    call_id = await live.asked("mkfifo wait; echo x > made; cat wait")
    record = await live.until(call_id, lambda record: record.preview is not None)
    board = live.supervisor.board
    assert record.is_held_back and call_id in board.held_back and call_id not in board.waiting
    assert (await live.supervisor.status()).waiting == 0
    assert not (live.workspace / "made").exists()
    await live.decide(call_id, Deny())
    assert call_id not in board.held_back
    assert not (live.workspace / "made").exists()


async def test_a_human_is_asked_after_a_while_and_its_effects_may_still_allow_it(tmp_path: Path) -> None:
    live = LiveBench(tmp_path)
    live.held_back_s = 0.2
    await live.open(WORKSPACE)
    call_id = await live.asked("echo x > made; sleep 3")
    record = await live.until(call_id, lambda record: record.verdict is not None and not record.verdict.held_back)
    assert call_id in live.supervisor.board.waiting
    assert record.verdict is not None and "it still runs, held back, after" in record.verdict.reason
    record = await live.over(call_id)
    assert record.applies and (live.workspace / "made").exists()
    await live.supervisor.close()


async def test_output_that_shows_a_secret_waits_for_a_human(live: LiveBench) -> None:
    text = "python3 -c \"print('gh' + 'p_' + 'a1B2' * 9)\""
    assert "looks like a key or a password" in await waits_because(live, text)


@pytest.mark.parametrize("held_back_s", [60.0, 1e-9])
async def test_variables_with_secrets_reach_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_back_s: float
) -> None:
    """A later command could read it to its agent. Its effects decide although a human is asked before it starts."""
    monkeypatch.setenv("SOME_API_TOKEN", "value-of-it")
    monkeypatch.setenv("OTHER", "gh" + "p_" + "a1B2" * 9)
    monkeypatch.setenv("PLAIN", "value of another")
    live = LiveBench(tmp_path)
    live.held_back_s = held_back_s
    await live.open(WORKSPACE)
    record = await live.over(await live.asked("python3 -c \"import os; open('x', 'w').write(str(os.environ))\""))
    written = live.files()["x"]
    assert record.applies and "value of another" in written
    assert "value-of-it" not in written and "a1B2" not in written
    await live.supervisor.close()


async def test_files_with_secrets_are_closed_to_what_is_held_back(live: LiveBench) -> None:
    (live.workspace / ".env").write_text("NAME=value-of-it\n")
    call_id = await live.asked("python3 -c \"import os; print(open('.' + 'env').read())\"; echo x > made")
    report = await live.report(call_id)
    assert report.way == "overlay" and b"value-of-it" not in await live.output(call_id)
    # Root reads an empty file there; anybody else is refused, and then a human has to say what is right.
    refused = [why for why in report.beyond_rule if "it names .env, which is closed" in why]
    assert bool(refused) == (os.geteuid() != 0)


async def test_files_with_secrets_further_down_are_closed_too(live: LiveBench) -> None:
    (live.workspace / "api").mkdir()
    (live.workspace / "api" / ".env").write_text("NAME=value-of-it\n")
    call_id = await live.asked("python3 -c \"print(open('api/.' + 'env').read()[::-1])\" || true")
    await live.report(call_id)
    assert b"ti-fo-eulav" not in await live.output(call_id)


async def test_what_git_does_not_say_about_files_with_secrets_is_asked(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_back, "GIT_BUDGET_S", -1.0)
    (live.workspace / ".env").write_text("NAME=value-of-it\n")
    call_id = await live.asked("echo x > made")
    assert "git has not said which files with secrets it tracks" in (await live.report(call_id)).problem.lower()
    record = await live.record(call_id)
    assert isinstance(record.state, Waiting) and not record.is_held_back


def test_output_is_withheld_where_it_is_not_known_which_files_were_closed(tmp_path: Path) -> None:
    def closed() -> tuple[str, ...]:
        raise Refused("git has not said", hint="Decide")

    (tmp_path / "err").write_text("cannot open .env")
    assert list(held_back.why_withheld(str(tmp_path), {}, closed, failed=True)) == ["git has not said"]


async def test_files_with_secrets_that_git_tracks_stay_as_they_are(live: LiveBench) -> None:
    (live.workspace / ".env").write_text("NAME=value-of-it\n")
    await made_by(f"git add -f .env && {GIT} commit -qm env", live.workspace)
    record = await live.over(await live.asked("echo x > made; git add -A; git status --short"))
    assert record.applies and await live.output(record.id) == b"A  made\n"


async def test_caches_are_dropped(live: LiveBench) -> None:
    cache = Path.home() / ".cache" / "whisper-tui-test"
    assert not cache.exists()
    code = "import os; os.makedirs(os.path.expanduser('~/.cache/whisper-tui-test/x')); open('made', 'w')"
    record = await live.over(await live.asked(f'python3 -c "{code}"'))
    assert record.applies and not cache.exists() and (live.workspace / "made").exists()


async def test_a_call_that_is_held_back_goes_on_under_the_next_supervisor(live: LiveBench) -> None:
    call_id = await live.asked("echo x > made; sleep 1")
    await live.until(call_id, lambda record: record.preview is not None)
    await live.restart(WORKSPACE)
    assert (await live.over(call_id)).applies
    assert (live.workspace / "made").exists()


async def test_a_command_whose_files_others_change_meanwhile_runs_once_more(live: LiveBench) -> None:
    (live.workspace / ".git" / "go").touch()
    call_id = await live.asked("echo mine >> kept.txt; echo ready; while [ ! -s .git/go ]; do sleep 0.05; done")
    await live.until(call_id, lambda record: record.preview is not None)
    async with asyncio.timeout(PATIENCE_S):
        while await live.output(call_id) != b"ready\n":
            await asyncio.sleep(0.05)
    (live.workspace / "kept.txt").write_text("theirs\n")
    (live.workspace / ".git" / "go").write_text("go")
    record = await live.over(call_id)
    assert record.applies and record.attempts == 2
    assert live.files()["kept.txt"] == "theirs\nmine\n"


async def test_changes_of_others_since_its_end_are_never_lost(live: LiveBench) -> None:
    def decided(record: CallRecord) -> bool:
        return not record.is_open or record.id in live.supervisor.board.waiting

    calls = [await live.asked(f"cat kept.txt > /dev/null; sleep 0.2; echo {n} >> kept.txt") for n in range(3)]
    for call_id in calls:
        await live.until(call_id, decided)
    found = [await live.record(call_id) for call_id in calls]
    applied = {n for n, record in enumerate(found) if isinstance(record.state, Ended)}
    first, *others = live.files()["kept.txt"].split()
    assert first == "two" and applied and sorted(map(int, others)) == sorted(applied)


async def test_a_terminal_and_typed_input_are_asked_about_at_once(live: LiveBench) -> None:
    session_id = await live.session()
    spec = CommandSpec(command=Shell(text="touch x"), cwd=str(live.workspace), tty=True)
    request = CallRequest(session_id=session_id, tool="t", arguments={}, spec=spec, description="", key=None)
    record = await live.record(await live.supervisor.submit(request))
    assert isinstance(record.state, Waiting) and not record.is_held_back


async def test_a_human_can_let_it_run_for_real_meanwhile(live: LiveBench) -> None:
    call_id = await live.asked('[ -n "$GIT_OPTIONAL_LOCKS" ] && sleep 60; echo x > made')
    await live.until(call_id, lambda record: record.preview is not None)
    await live.decide(call_id, Approve())
    record = await live.over(call_id)
    assert record.decided_by_human and not record.applies and (live.workspace / "made").exists()
    assert os.environ.get("GIT_OPTIONAL_LOCKS") is None


async def test_two_that_change_one_workspace_take_turns(live: LiveBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen the same files: whoever applies second must find that the first has changed one of them."""
    at_once, most = 0, 0
    make_real = attempt_ways.make_real

    def slowly(directory: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.3)
        make_real(directory)
        at_once -= 1

    monkeypatch.setattr(attempt_ways, "make_real", slowly)
    calls = [await live.asked(f"echo x > {name}") for name in ("a", "b", "c")]
    for call_id in calls:
        await live.over(call_id)
    assert most == 1


async def test_of_a_home_only_the_workspace_and_programs_can_be_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in (".config/tool", ".bash_history", "Documents/diary", "work/mine/src", "work/other/src", "go/bin/tool"):
        (home / name).mkdir(parents=True)
    found = personal_places(str(home), [str(home / "work" / "mine")], f"/usr/bin:{home}/go/bin:relative")
    assert {os.path.relpath(path, home) for path in found} == {".bash_history", "Documents", "work/other"}
    for number in range(400):
        (home / f"n{number}").mkdir()
    with pytest.raises(Refused):
        personal_places(str(home), [str(home / "work" / "mine")], "")
