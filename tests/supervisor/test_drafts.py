"""Drafts with real keepers: nothing is real before it is applied, and nobody else's work is overwritten."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor import random_drafts
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_held_back import GIT, made_by
from tests.supervisor.test_previews import PATIENCE_S, LiveBench
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits, Shell, WriteFile
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftPage
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.errors import Refused
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.verdict import DRAFT_RULE
from whisper_tui.supervisor.draft_sessions import DraftSessions
from whisper_tui.supervisor.runs import attempt_ways
from whisper_tui.supervisor.runs.attempt_ways import make_real

pytestmark = needs_overlays


class DraftBench(LiveBench):
    """A session with a draft."""

    name: str

    async def began(self) -> None:
        self.name = await self.session()
        await self.supervisor.start_draft(self.name, HUMAN)

    async def ran(self, text: str, code: int = 0) -> CallRecord:
        """Run a command in the draft, unasked."""
        record = await self.over(await self.submit(self.name, text=text))
        assert isinstance(record.state, Ended) and record.state.ending == Exited(code=code), record
        return record

    async def said(self, text: str) -> str:
        record = await self.ran(text)
        return (await self.output(record.id)).decode()

    async def page(self) -> DraftPage:
        return await self.supervisor.draft_page(self.name)

    async def changed(self) -> dict[str, str]:
        return {
            os.path.relpath(each.change.path, self.workspace): each.change.action
            for each in (await self.page()).changes
            if not each.only_time
        }

    async def applied(self, *paths: str, all_but: bool = False, calls: tuple[str, ...] = ()) -> DraftApplied:
        named = tuple(str(self.workspace / path) for path in paths)
        order = DraftApply(session_id=self.name, paths=named, all_but=all_but, calls=calls)
        return await self.supervisor.apply_draft(order, HUMAN)


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[DraftBench]:
    made = DraftBench(tmp_path)
    (made.workspace / "kept.txt").write_text("kept\n")
    (made.workspace / "old.txt").write_text("one\n")
    (made.workspace / "sub").mkdir()
    (made.workspace / "sub" / "a").write_text("a\n")
    await made.open()
    await made.began()
    yield made
    await made.supervisor.close()


async def test_commands_find_what_those_before_them_have_changed_and_nothing_is_real(live: DraftBench) -> None:
    before = live.files()
    await live.ran("echo two >> old.txt; mkdir made; echo x > made/x; rm kept.txt")
    assert await live.said("cat old.txt made/x; ls") == "one\ntwo\nx\nmade\nold.txt\nsub\n"
    record = await live.ran("sed -i s/two/three/ old.txt; exit 3", code=3)
    assert record.decided_by is not None and record.decided_by.who == DRAFT_RULE
    assert live.files() == before
    assert await live.changed() == {
        "old.txt": "replaces",
        "kept.txt": "deletes",
        "made": "creates",
        "made/x": "creates",
    }


async def test_all_of_it_becomes_real_at_once_and_is_taken_back_by_the_call_that_did_it(live: DraftBench) -> None:
    before = live.files()
    await live.ran("echo two >> old.txt; mkdir made; echo x > made/x")
    await live.ran("rm kept.txt; echo three >> old.txt")
    done = await live.applied()
    assert done.over and done.call_id is not None and len(done.calls) == 2
    assert live.files() == {"old.txt": "one\ntwo\nthree\n", "made/x": "x\n", "sub/a": "a\n"}
    assert await live.supervisor.drafts() == ()
    await live.supervisor.undo(done.call_id, (), "undo", HUMAN)
    assert live.files() == before
    await live.supervisor.undo(done.call_id, (), "redo", HUMAN)
    assert live.files()["old.txt"] == "one\ntwo\nthree\n"


async def test_a_part_becomes_real_and_the_draft_goes_on(live: DraftBench) -> None:
    await live.ran("echo two >> old.txt; mkdir made; echo x > made/x; echo b > sub/b")
    await live.ran("echo three >> sub/a")
    done = await live.applied("old.txt", "made")
    assert not done.over and done.total == 2
    assert live.files() == {"kept.txt": "kept\n", "old.txt": "one\ntwo\n", "made/x": "x\n", "sub/a": "a\n"}
    assert await live.changed() == {"sub/a": "changes", "sub/b": "creates"}
    # What is real is no conflict of what comes later, and what others make of it is found.
    await made_by("echo mine >> made/x; echo mine > made/y", live.workspace)
    assert await live.said("cat made/x made/y") == "x\nmine\nmine\n"
    await live.ran("echo three >> old.txt; echo y >> made/x; rm sub/b")
    assert (await live.page()).conflicts == ()
    assert (await live.applied()).over
    files = live.files()
    assert (files["old.txt"], files["made/x"], files["sub/a"]) == ("one\ntwo\nthree\n", "x\nmine\ny\n", "a\nthree\n")


async def test_what_calls_have_changed_becomes_real_with_what_cannot_be_told_apart_from_it(live: DraftBench) -> None:
    first = await live.ran("echo two >> old.txt; echo 1 > first")
    await live.ran("echo x > other")
    third = await live.ran("echo three >> old.txt; echo 3 > third")
    changes = {Path(each.change.path).name: each.calls for each in (await live.page()).changes}
    assert changes["old.txt"] == (first.id, third.id) and changes["third"] == (third.id,)
    done = await live.applied(calls=(third.id,))
    assert done.calls == (first.id, third.id)
    assert await live.changed() == {"other": "creates"}
    with pytest.raises(Refused, match="not among the changes"):
        await live.applied("first")


@pytest.mark.parametrize(
    ("command", "human", "path"),
    [
        ("echo two >> old.txt", "echo mine >> old.txt", "old.txt"),
        ("echo two >> old.txt", "rm old.txt", "old.txt"),
        ("echo two >> old.txt", "echo mine > n && mv n old.txt", "old.txt"),
        ("rm old.txt", "echo mine >> old.txt", "old.txt"),
        ("echo x > new", "echo mine > new", "new"),
        ("mkdir new", "echo mine > new", "new"),
        ("rm -r sub", "echo mine > sub/mine", "sub"),
        ("rm -r sub", "echo mine >> sub/a", "sub"),
        ("rm -r sub; mkdir sub; echo x > sub/x", "echo mine > sub/mine", "sub/mine"),
        ("rm -r sub; echo x > sub", "echo mine > sub/mine", "sub"),
        ("echo x >> sub/a", "rm -r sub", "sub"),
        ("echo x >> sub/a", "mv sub gone && mkdir sub && echo mine > sub/a", "sub/a"),
        ("ln old.txt name", "echo mine >> old.txt", "old.txt"),
        ("mv old.txt name", "echo mine > name", "name"),
        ("chmod 600 old.txt", "chmod 640 old.txt", "old.txt"),
        ("chmod 700 sub", "chmod 711 sub", "sub"),
    ],
)
async def test_what_a_human_has_changed_meanwhile_is_named_and_never_overwritten(
    live: DraftBench, command: str, human: str, path: str
) -> None:
    await live.ran(f"echo other > other; {command}")
    await made_by(human, live.workspace)
    as_it_was = live.files()
    conflicts = [os.path.relpath(each, live.workspace) for each in (await live.page()).conflicts]
    assert any(each == path or each.startswith(f"{path}/") for each in conflicts), conflicts
    with pytest.raises(Refused, match="changed in the real files since"):
        await live.applied()
    assert live.files() == as_it_was
    done = await live.applied("other")
    assert done.total == 1 and live.files() == as_it_was | {"other": "other\n"}
    done = await live.applied(*conflicts, all_but=True)
    assert {each: text for each, text in live.files().items() if "mine" in text} == {
        each: text for each, text in as_it_was.items() if "mine" in text
    }


async def test_edits_of_a_human_before_and_beside_the_draft_are_no_conflicts(live: DraftBench) -> None:
    await live.ran("echo x > x")
    await made_by("echo mine >> old.txt; echo mine > beside; rm -r sub; mkdir sub; echo mine > sub/b", live.workspace)
    assert await live.said("cat old.txt beside sub/b") == "one\nmine\nmine\nmine\n"
    await live.ran("echo two >> old.txt; echo two >> sub/b")
    assert (await live.applied()).over
    files = live.files()
    assert (files["old.txt"], files["sub/b"], files["x"]) == ("one\nmine\ntwo\n", "mine\ntwo\n", "x\n")


async def test_a_command_that_tries_to_reach_another_machine_waits_for_a_human_and_no_other_waits_for_it(
    live: DraftBench,
) -> None:
    connect = "import socket; socket.create_connection(('example.org', 443), 1)"
    call_id = await live.submit(live.name, text=f'python3 -c "{connect}" 2> /dev/null || echo 1 > one')
    report = await live.report(call_id)
    record = await live.record(call_id)
    assert isinstance(record.state, Waiting) and "tried to reach example.org:443" in "; ".join(report.beyond_rule)
    assert await live.said("cat one") == "1\n"
    with pytest.raises(Refused, match="would be the run itself"):
        await live.supervisor.preview(call_id, HUMAN)
    await live.decide(call_id, Approve(preview=report.digest))
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert set(await live.changed()) == {"one"} and not (live.workspace / "one").exists()


async def test_what_a_human_lets_out_runs_in_the_draft_with_the_network(live: DraftBench) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await live.ran("echo 1 > one")
        fetch = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode(), end='')"
        call_id = await live.submit(
            live.name, text=f'curl --version >/dev/null; python3 -c "{fetch}" | cat one - > two'
        )
        record = await live.record(call_id)
        assert isinstance(record.state, Waiting) and record.preview is None
        await live.decide(call_id, Approve())
        record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert await live.said("cat two") == "1\nhello\n" and not (live.workspace / "two").exists()
    page = await live.page()
    assert [each.calls for each in page.changes if each.change.path.endswith("/two")] == [(call_id,)]


async def test_one_command_at_a_time_is_in_the_draft_in_the_order_of_the_calls(live: DraftBench) -> None:
    calls = [
        await live.submit(live.name, text=f"cat n > m; sleep 0.0{9 - each}; echo {each} >> n") for each in range(8)
    ]
    for call_id in calls:
        await live.over(call_id)
    assert await live.said("cat n | tr -d '\\n'") == "01234567"


async def test_a_draft_goes_on_after_the_supervisor_was_killed(live: DraftBench) -> None:
    (live.workspace / "old.txt").write_text("")
    await live.ran("echo 1 > one")
    running = await live.submit(live.name, text="until [ -s old.txt ]; do sleep 0.02; done; echo 2 > two")
    later = await live.submit(live.name, text="cat one two > three")
    await live.until(running, lambda record: record.preview is not None)
    assert (await live.supervisor.drafts())[0].running == running
    with pytest.raises(Refused, match=f"call {running} runs in the draft now"):
        await live.applied()
    await live.kill()
    (live.workspace / "old.txt").write_text("go")
    await live.over(running)
    await live.over(later)
    assert await live.said("cat three") == "1\n2\n"
    assert not (live.workspace / "one").exists()
    assert (await live.applied()).over and live.files()["three"] == "1\n2\n"


async def test_a_command_of_which_everything_was_killed_leaves_what_it_has_done_and_a_question(
    live: DraftBench,
) -> None:
    await live.ran("echo 1 > one")
    call_id = await live.submit(live.name, text="echo 2 > two; touch here; sleep 600")
    upper = Path(live.home.state) / "drafts" / live.name
    async with asyncio.timeout(PATIENCE_S):
        while not list(upper.rglob("here")):
            await asyncio.sleep(0.01)
    record = await live.record(call_id)
    assert record.preview is not None
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_of(entry, call_id, str(live.home.state)):
            os.kill(int(entry.name), 9)
    await live.until(call_id, lambda record: record.preview is not None and record.preview.report is not None)
    assert isinstance((await live.record(call_id)).state, Waiting)
    assert await live.said("cat one two") == "1\n2\n"
    await live.decide(call_id, Deny())
    assert set(await live.changed()) == {"one", "two", "here"}


def _is_of(process: Path, call_id: str, state: str) -> bool:
    """True for a command of a call, by its variables."""
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
        return f"WHISPER_TUI_CALL_ID={call_id}".encode() in variables
    except OSError:
        return False


async def test_of_a_repository_all_is_applied_or_nothing(live: DraftBench) -> None:
    await made_by(f"git init -q -b main . && git add -A && {GIT} commit -qm one", live.workspace)
    await live.ran(f"echo two >> old.txt && git add -A && {GIT} commit -qm two && git branch side")
    await live.ran("echo x > beside")
    done = await live.applied(".git/refs/heads/side")
    assert done.total > 3 and (await live.changed()) == {"beside": "creates", "old.txt": "changes"}
    await made_by("git fsck --no-progress && git log --oneline | grep -q two", live.workspace)
    assert (await live.applied()).over
    await made_by("git diff --quiet HEAD", live.workspace)


async def test_a_dropped_draft_leaves_nothing(live: DraftBench) -> None:
    before = live.files()
    await live.ran("echo two >> old.txt; mkdir -m 0 closed; ln -s x link; mkfifo pipe")
    await live.supervisor.drop_draft(live.name, HUMAN)
    assert live.files() == before and not list((Path(live.home.state) / "drafts").iterdir())
    assert "has dropped the draft" in live.supervisor.board.said[live.name][-1].text
    with pytest.raises(Refused, match="there is no draft of"):
        await live.page()
    # Its commands run on the real files again, and are judged as before.
    assert isinstance((await live.record(await live.submit(live.name, text="echo x > x"))).state, Waiting)


async def test_directories_and_files_that_a_command_has_closed_to_itself_stay_closed(live: DraftBench) -> None:
    await live.ran(
        "mkdir closed; echo x > closed/x; chmod 600 closed/x; chmod 0 closed; chmod 500 sub; chmod 0 old.txt"
    )
    for _ in range(2):
        await live.page()
        assert await live.said("stat -c %a closed sub old.txt | tr '\\n' ' '") == "0 500 0 "
    await live.ran("chmod 500 closed")
    await live.applied()
    assert [(live.workspace / each).stat().st_mode & 0o777 for each in ("closed", "sub", "old.txt")] == [
        0o500,
        0o500,
        0,
    ]
    for each in ("closed", "sub"):
        (live.workspace / each).chmod(0o700)


async def test_sessions_whose_agent_edits_files_itself_get_no_draft(live: DraftBench) -> None:
    hook = await live.session(key="claude-code 1234")
    with pytest.raises(Refused, match="would find another tree"):
        await live.supervisor.start_draft(hook, HUMAN)
    edits = FileEdits(tool="Write", changes=(WriteFile(path=str(live.workspace / "old.txt"), content="x"),))
    for spec, more in (
        (CommandSpec(command=edits, cwd=str(live.workspace)), {}),
        (CommandSpec(command=Shell(text="ls"), cwd=str(live.workspace)), {"ticket": "secret"}),
        (CommandSpec(command=Shell(text="ls"), cwd=str(live.workspace)), {"by_agent": True}),
    ):
        asked = CallRequest.model_validate(
            {"session_id": live.name, "tool": "x", "arguments": {}, "spec": spec.model_dump(), **more}
        )
        record = await live.record(await live.supervisor.submit(asked))
        assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
        assert "private view of the files" in record.state.ending.reason


async def test_a_draft_begins_where_nothing_of_the_session_is_under_way(live: DraftBench) -> None:
    other = await live.session()
    waiting = await live.submit(other, text="echo x > x; cat x")
    previewed = await live.submit(other, text="echo y > y")
    await live.previewed(previewed)
    with pytest.raises(Refused, match=f"call {previewed} .* is not over"):
        await live.supervisor.start_draft(other, HUMAN)
    await live.decide(previewed, Deny())
    await live.supervisor.start_draft(other, HUMAN)
    assert (await live.over(waiting)).in_draft
    assert not (live.workspace / "x").exists()
    # Each draft is its own.
    assert await live.said("ls x 2>&1 || true") != "x\n"
    with pytest.raises(Refused, match="has a draft already"):
        await live.supervisor.start_draft(other, HUMAN)


CALLS_OF_A_TASK = (
    "git init -q -b main . && git add -A && git commit -qm first",
    "mkdir -p src tests docs/deep/er && printf 'def f():\\n    return 1\\n' > src/a.py",
    "cp src/a.py src/b.py && sed -i s/f/g/ src/b.py",
    "perl -pi -e 's/1/2/' src/a.py",
    "python3 -c \"open('src/c.py', 'w').write('x = 3\\n')\"",
    "chmod 755 src/c.py && touch -d @1000000000 src/c.py",
    "ln -s ../src/a.py docs/link && ln src/b.py docs/hard",
    "mv src/c.py src/d.py",
    "git add -A && git commit -qm second && git tag v1",
    "git checkout -qb side && echo side > side.txt && git add side.txt && git commit -qm side",
    "git checkout -q main && git merge -q --no-edit side",
    "tar cf all.tar src docs && mkdir out && tar xf all.tar -C out && rm all.tar",
    "for i in 1 2 3 4 5; do echo $i > docs/deep/er/$i; done; rm docs/deep/er/3",
    "rm -r docs/deep && mkdir docs/deep && echo new > docs/deep/new",
    "rm -r out/src && ln -s elsewhere out/src",
    "rm old.txt && mkdir old.txt && echo x > old.txt/x",
    "mv old.txt renamed && echo file > old.txt",
    "chmod 600 kept.txt && printf %s more >> kept.txt",
    "mkfifo pipe && rm pipe && mkfifo -m 600 pipe2",
    "dd if=/dev/zero of=sparse bs=1k count=1 seek=100 2> /dev/null",
)


async def test_a_task_of_sixty_calls_asks_nothing_and_applied_is_the_same_as_run_for_real(
    live: DraftBench, tmp_path: Path
) -> None:
    variables = " ".join(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME=n", "EMAIL=n@n"))
    dates = "GIT_AUTHOR_DATE=@1700000000+0000 GIT_COMMITTER_DATE=@1700000000+0000"
    # No configuration of git is read, and the same commits have the same names.
    first = f"export {variables} {dates} GIT_CONFIG_GLOBAL=/dev/null; "
    texts = [*CALLS_OF_A_TASK]
    texts += [f"echo {n} >> log; mkdir -p many/{n % 4}; echo {n} > many/{n % 4}/{n}" for n in range(60 - len(texts))]
    real = tmp_path / "real"
    await made_by(f"cp -a {live.workspace} {real}", tmp_path)
    before = tree(live.workspace)
    for text in texts:
        call_id = await live.submit(live.name, text=first + text)
        await made_by(first + text, real)
        record = await live.over(call_id)
        assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0), text
    assert not live.supervisor.board.waiting
    assert tree(live.workspace) == before
    assert (await live.applied()).over
    # The index of git has times and inodes of files in it; what it means is looked at by git.
    assert tree(live.workspace) == tree(real)
    await made_by('test -z "$(git status --porcelain)" || git status --porcelain', live.workspace)
    await made_by("git fsck --no-progress --strict", live.workspace)


def tree(top: Path) -> dict[str, tuple[object, ...]]:
    """Return everything below a directory: kinds, modes, contents, links, further names, and times that were set."""
    found: dict[str, tuple[object, ...]] = {}
    names: dict[int, str] = {}
    for path in sorted(top.rglob("*")):
        name, status = str(path.relative_to(top)), path.lstat()
        if name == ".git/index" or name.startswith(".git/logs"):
            continue
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = (path.read_bytes(), names.setdefault(status.st_ino, name))
        time_set = status.st_mtime if status.st_mtime < 1_700_000_000 else None
        found[name] = (oct(status.st_mode), status.st_uid, content, time_set)
    return found


async def test_secrets_are_closed_to_what_runs_in_a_draft_also_to_what_a_human_lets_out(live: DraftBench) -> None:
    (live.workspace / ".env").write_text("TOKEN=1\n")
    call_id = await live.submit(live.name, text="cat .env; curl --version > /dev/null; echo done > done")
    assert isinstance((await live.record(call_id)).state, Waiting)
    await live.decide(call_id, Approve())
    await live.over(call_id)
    assert await live.output(call_id) == b"" and await live.said("cat done") == "done\n"


async def test_a_draft_is_applied_after_its_session_is_over(live: DraftBench) -> None:
    await live.ran("echo two >> old.txt")
    await live.supervisor.close_session(live.name, "its agent has left")
    await live.kill()
    assert (await live.applied()).over and live.files()["old.txt"] == "one\ntwo\n"


async def test_no_sandbox_is_left_out_because_of_a_draft(live: DraftBench) -> None:
    call_id = await live.submit(live.name, text="curl --version > version")
    await live.decide(call_id, Approve(sandbox=Sandbox(kind="read-only")))
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting))
    assert record.verdict is not None and "approve it without one" in record.verdict.reason


async def test_an_apply_that_others_prevent_in_the_last_moment_leaves_the_draft(
    live: DraftBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.ran("echo two >> old.txt; echo x > x")

    def edited(directory: str) -> None:
        (live.workspace / "old.txt").write_text("mine\n")
        make_real(directory)

    monkeypatch.setattr(attempt_ways, "make_real", edited)
    with pytest.raises(Refused, match="nothing was applied"):
        await live.applied()
    assert live.files()["old.txt"] == "mine\n" and "x" not in live.files()
    assert not live.supervisor.board.waiting and set(await live.changed()) == {"old.txt", "x"}
    monkeypatch.undo()
    await live.applied("old.txt", all_but=True)
    assert live.files()["x"] == "x\n" and live.files()["old.txt"] == "mine\n"


async def test_a_draft_is_over_although_the_supervisor_was_killed_while_it_was_applied(
    live: DraftBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.ran("echo two >> old.txt; echo x > x")

    async def killed(*_: object, **__: object) -> bool:
        raise Refused("killed")

    monkeypatch.setattr(DraftSessions, "_ended", killed)
    with pytest.raises(Refused, match="killed"):
        await live.applied()
    await live.over("2")
    monkeypatch.undo()
    assert live.files()["x"] == "x\n" and await live.supervisor.drafts()
    await live.kill()
    async with asyncio.timeout(PATIENCE_S):
        while await live.supervisor.drafts():
            await asyncio.sleep(0.01)
    assert "has applied the draft" in live.supervisor.board.said[live.name][-1].text


@pytest.mark.parametrize("seed", range(1000, 1012))
@pytest.mark.few(2)
async def test_no_edit_of_a_human_is_lost_in_random_drafts(tmp_path: Path, seed: int) -> None:
    edits, _ = await random_drafts.play(tmp_path, seed)
    assert edits
