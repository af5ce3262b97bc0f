"""Approvals that reach further: a prefix, so many times, for a while, or as a saved rule."""

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.decision import Approve, ExactScope, PrefixScope, RuleScope
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import Ended, ShellReport
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.journal.store import AT_ONCE
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.tools.agent_text import agent_note


class Kept:
    """A rule book that only keeps rules."""

    def __init__(self, kept: list[Rule]) -> None:
        self._kept = kept

    def current(self, root: str = "") -> Rules:
        return Rules(allow=tuple(self._kept))

    def keep(self, rule: Rule) -> None:
        self._kept.append(rule)


PUSH = PrefixScope(words=("npm", "test"))


@pytest.fixture
async def programs(bench: Bench, monkeypatch) -> Bench:
    """A bench whose sessions find the program that the tests speak of."""
    place = bench.workspace / "bin"
    place.mkdir()
    for name in ("npm", "git"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    await bench.restart()
    return bench


async def kind(bench: Bench, call_id: str) -> str:
    return (await bench.record(call_id)).verdict.kind


async def test_a_prefix_covers_what_begins_like_it_with_the_same_options(programs: Bench) -> None:
    session = await programs.session()
    first = await programs.submit(session, text="npm test -- --quiet")
    assert (await programs.record(first)).verdict.prefixes == (("npm", "test"),)
    await programs.approve(await programs.submit(session, text="npm test --silent a"), remember=PUSH)
    assert await kind(programs, await programs.submit(session, text="npm test --silent b c")) == "allow"
    assert await kind(programs, await programs.submit(session, "npm", "test", "d")) == "allow"
    assert await kind(programs, await programs.submit(session, text="npm test --script-shell=x")) == "ask"
    assert await kind(programs, await programs.submit(session, text="npm test; rm x")) == "ask"
    assert await kind(programs, await programs.submit(session, text="npm publish")) == "ask"
    assert await kind(programs, await programs.submit(await programs.session("other"), text="npm test")) == "ask"


@pytest.mark.parametrize("text", ["CI=1 npm test", "export CI=1; npm test", "set -e; CI=1; export CI; npm test"])
async def test_the_offered_prefix_names_the_variables_that_a_line_sets(programs: Bench, text: str) -> None:
    await programs.restart(Rules(read_only=True))
    session = await programs.session()
    first = await programs.submit(session, text=text)
    (offered,) = (await programs.record(first)).verdict.prefixes
    assert offered == ("CI=1", "npm", "test")
    await programs.approve(first, remember=PrefixScope(words=offered))
    for again in ("CI=1 npm test a", "export CI=1 && npm test b", "cd . && env CI=1 timeout 9 npm test"):
        assert await kind(programs, await programs.submit(session, text=again)) == "allow"
    for other in ("npm test", "CI=2 npm test", "false && export CI=1; npm test", "CI=1 PATH=. npm test"):
        assert await kind(programs, await programs.submit(session, text=other)) == "ask"


@pytest.mark.parametrize("text", ["NO_COLOR=1 npm test", "export LC_ALL=C; npm test", "TZ=UTC; npm test"])
async def test_variables_that_change_only_looks_need_not_be_named(programs: Bench, text: str) -> None:
    await programs.restart(Rules(read_only=True, allow=(Rule(name="tests", prefix=("npm", "test"), sandbox=False),)))
    session = await programs.session()
    assert await kind(programs, await programs.submit(session, text=text)) == "allow"


@pytest.mark.parametrize(
    "setting",
    [
        "PATH=.",
        "LD_PRELOAD=./x.so",
        "GIT_SSH=./x",
        "NODE_OPTIONS=-r./x",
        "PYTHONPATH=.",
        "IFS=a",
        "TOKEN=abc123",
        "BASH_ENV=x",
    ],
)
async def test_no_prefix_is_offered_with_a_variable_that_changes_what_runs_or_is_secret(
    programs: Bench, setting: str
) -> None:
    await programs.restart(Rules(read_only=True, allow=(Rule(name="tests", prefix=("npm", "test"), sandbox=False),)))
    session = await programs.session()
    for text in (
        f"{setting} npm test",
        f"export {setting}; npm test",
        f"{setting}; npm test",
        f"env {setting} npm test",
    ):
        call = await programs.submit(session, text=text)
        verdict = (await programs.record(call)).verdict
        assert (verdict.kind, verdict.prefixes) == ("ask", ())
        scope = PrefixScope(words=(setting, "npm", "test"))
        with pytest.raises(Refused):
            await programs.approve(call, remember=scope)


@pytest.mark.parametrize("text", ["source .venv/bin/activate && npm test", "X=1; npm test", "unset X; npm test"])
async def test_no_prefix_is_offered_where_it_is_not_certain_what_a_program_gets(programs: Bench, text: str) -> None:
    await programs.restart(Rules(read_only=True, allow=(Rule(name="tests", prefix=("npm", "test"), sandbox=False),)))
    call = await programs.submit(await programs.session(), text=text)
    verdict = (await programs.record(call)).verdict
    assert (verdict.kind, verdict.prefixes) == ("ask", ())


async def test_what_a_scope_would_cover_is_counted_beside_what_only_reads(programs: Bench) -> None:
    await programs.restart(Rules(read_only=True))
    session = await programs.session()
    texts = ("npm test a | tail -3", "ls", "cd . && npm test", "npm test > out", "npm test | tail -3")
    calls = [await programs.submit(session, text=text) for text in texts]
    covered = (await programs.supervisor.would_cover(calls[-1], PUSH)).calls
    assert covered == (calls[4], calls[2], calls[0])
    await programs.restart(Rules(read_only=False))
    assert (await programs.supervisor.would_cover(calls[-1], PUSH)).calls == ()


async def test_a_prefix_lets_through_what_waits_already(programs: Bench) -> None:
    session = await programs.session()
    first, second = [await programs.submit(session, text=f"npm test {name}") for name in "ab"]
    await programs.approve(first, remember=PUSH)
    await programs.ordered(second)


async def test_an_agent_is_told_what_was_approved_and_not_that_this_command_was(programs: Bench) -> None:
    session = await programs.session()
    first, waits = [await programs.submit(session, text=f"npm test {name}") for name in "ab"]
    await programs.approve(first, remember=PUSH)
    await programs.ordered(waits)
    later = await programs.submit(session, text="npm test c")
    for call_id in (waits, later):
        note = agent_note(await programs.record(call_id))
        begin = "a human had approved commands that begin with `npm test` for this session"
        assert note == f"No human was asked this time: {begin}, with call {first}."
    exact = await programs.submit(session, "true")
    await programs.approve(exact, remember=ExactScope())
    again = await programs.record(await programs.submit(session, "true"))
    same = f"a human had approved this same command for this session, with call {exact}"
    assert agent_note(again) == f"No human was asked this time: {same}."


async def waiting_pushes(bench: Bench) -> list[str]:
    """So many calls that begin alike that an approval cannot reach them all at once."""
    session = await bench.session()
    return [await bench.submit(session, text=f"npm test {number}") for number in range(3 * AT_ONCE)]


async def test_others_are_answered_before_an_approval_has_reached_all_that_waits(programs: Bench) -> None:
    first, *rest, last = await waiting_pushes(programs)
    await programs.approve(first, remember=PUSH)
    await programs.deny(last, "not this one")
    for call_id in rest:
        await programs.eventually(call_id, lambda record: record.state.kind != "waiting", "approved")
    state = (await programs.record(last)).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)


async def test_an_approval_reaches_all_that_waits_once_the_journal_takes_it(programs: Bench) -> None:
    first, *rest = await waiting_pushes(programs)
    await programs.approve(first, remember=PUSH)
    blocker = sqlite3.connect(programs.home.state / "journal.sqlite")
    blocker.execute("BEGIN IMMEDIATE")
    store = programs.supervisor._store
    store.journal._db.execute("PRAGMA busy_timeout = 1")
    async with asyncio.timeout(60):
        while store.health.problem is None:
            await asyncio.sleep(0.005)
    assert (await programs.record(rest[-1])).state.kind == "waiting"
    blocker.rollback()
    blocker.close()
    for call_id in rest:
        await programs.eventually(call_id, lambda record: record.state.kind != "waiting", "approved")


async def test_a_number_of_uses_is_counted_down(programs: Bench) -> None:
    session = await programs.session()
    await programs.approve(await programs.submit(session, "true"), remember=ExactScope(uses=2))
    used = [await programs.submit(session, "true") for _ in range(3)]
    assert [await kind(programs, call_id) for call_id in used] == ["allow", "allow", "ask"]
    await programs.ordered(used[1])


async def test_an_approval_ends_with_its_time(programs: Bench) -> None:
    now = [1000.0]
    await programs.supervisor.close()
    programs.supervisor = Supervisor(programs.home, programs.executor, clock=lambda: now[0])
    await programs.supervisor.open()
    session = await programs.session()
    await programs.approve(await programs.submit(session, "true"), remember=ExactScope(minutes=2))
    now[0] += 119
    assert await kind(programs, await programs.submit(session, "true")) == "allow"
    now[0] += 1
    assert await kind(programs, await programs.submit(session, "true")) == "ask"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("npm test x", PrefixScope(words=("npm",))),
        ("npm", PrefixScope(words=("npm",))),
        ("tool", PrefixScope(words=("tool",))),
        ("npm run x", PrefixScope(words=("npm", "run"))),
        ("npm test x", PrefixScope(words=("git", "push"))),
        ("git push --force", PrefixScope(words=("git", "push"))),
        ("npm test > out", PUSH),
        ("npm test $x", PUSH),
        ("A=1 npm test", PUSH),
    ],
)
async def test_too_general_calls_cannot_be_remembered(programs: Bench, text: str, scope: PrefixScope) -> None:
    call_id = await programs.submit(await programs.session(), text=text)
    with pytest.raises(Refused, match="cannot be remembered"):
        await programs.approve(call_id, remember=scope)
    assert (await programs.record(call_id)).state.kind == "waiting"


async def test_a_remembered_prefix_never_beats_a_rule_that_denies(programs: Bench) -> None:
    session = await programs.session()
    await programs.approve(await programs.submit(session, text="npm test a"), remember=PUSH)
    programs.supervisor.rules = Rules(deny=(Rule(name="no b", prefix=("npm", "test", "b")),))
    assert await kind(programs, await programs.submit(session, text="npm test b")) == "refuse"


async def test_an_approval_can_be_saved_as_a_rule_of_the_project(programs: Bench) -> None:
    kept: list[Rule] = []
    await programs.supervisor.close()
    programs.supervisor = Supervisor(programs.home, programs.executor, rule_book=Kept(kept))
    await programs.supervisor.open()
    session = await programs.session()
    call_id = await programs.submit(session, text="npm test --silent")
    seen = (await programs.record(call_id)).seen_digest()
    scope = RuleScope(words=("npm", "test"))
    await programs.supervisor.decide(call_id, Approve(remember=scope), HUMAN, seen)
    assert [(rule.prefix, rule.options, rule.directory) for rule in kept] == [
        (("npm", "test"), ("--silent",), str(programs.workspace))
    ]
    assert await kind(programs, await programs.submit(session, text="npm test x --silent")) == "allow"


async def test_the_rule_on_offer_counts_what_was_approved_before_and_covers_it(programs: Bench) -> None:
    session = await programs.session()
    for text in ("npm test a --silent", "npm test b", "npm test c; rm -rf x", "NODE_ENV=x npm test", "npm run build"):
        await programs.approve(await programs.submit(session, text=text))
    await programs.deny(await programs.submit(session, text="npm test --denied"), "no")
    elsewhere = CommandSpec(command=Shell(text="npm test --elsewhere"), cwd="/")
    await programs.approve(await programs.submit(session, text="npm test e"), edited=elsewhere)
    call_id = await programs.submit(session, text="npm test --ci")
    scope = RuleScope(words=("npm", "test"))
    found = await programs.supervisor.would_cover(call_id, scope)
    assert (found.approved, found.options) == (2, ("--silent",))
    wider = await programs.supervisor.would_cover(call_id, scope.model_copy(update={"options": ("--silent",)}))
    assert (wider.approved, wider.options) == (2, ())
    assert len(set(wider.calls) - set(found.calls)) == 1


@pytest.mark.parametrize(
    ("words", "option"), [(("git", "diff"), "--output=x"), (("git", "diff"), "--ext-diff"), (("npm", "test"), "x")]
)
async def test_a_rule_lists_no_dangerous_options_of_others(
    programs: Bench, words: tuple[str, ...], option: str
) -> None:
    call_id = await programs.submit(await programs.session(), text=f"{' '.join(words)} zz")
    with pytest.raises(Refused, match="is dangerous, or no option"):
        await programs.supervisor.would_cover(call_id, RuleScope(words=words, options=(option,)))


async def test_commands_allowed_by_rules_start_without_a_shell_and_a_minimal_environment(programs: Bench) -> None:
    programs.supervisor.rules = Rules(allow=(Rule(name="t", prefix=("npm", "test"), sandbox=False),))
    environment = {"PATH": str(programs.workspace / "bin"), "BASH_ENV": "/x", "LD_PRELOAD": "/y", "KEPT": "z"}
    session = await programs.session(environment=environment | {"PATH": environment["PATH"] + ":/usr/bin:/bin"})
    order = programs.executor.orders[await programs.ordered(await programs.submit(session, text="npm test 'a b'"))]
    assert order.spec.command == Argv(program="npm", args=("test", "a b"))
    assert order.program == str(programs.workspace / "bin" / "npm")
    assert order.environment["KEPT"] == "z"
    assert not {"BASH_ENV", "LD_PRELOAD"} & set(order.environment)


async def test_no_file_of_a_project_runs_before_an_approved_command(programs: Bench, tmp_path: Path) -> None:
    own = tmp_path / "set-up" / "env.sh"
    own.parent.mkdir()
    (programs.workspace / "env.sh").write_text("echo project\n")
    own.write_text("echo user\n")
    own.chmod(0o600)
    (linked := own.with_name("linked.sh")).symlink_to(programs.workspace / "env.sh")
    (shared := own.with_name("shared.sh")).write_text("echo anybody\n")
    shared.chmod(0o666)
    (grouped := own.with_name("of_a_group.sh")).write_text("echo a group\n")
    grouped.chmod(0o620)
    foreign = (
        "env.sh",
        f"{programs.workspace}/env.sh",
        *map(str, (linked, shared, grouped)),
        f"$(touch x){own}",
        "/no/such/file",
    )

    async def inherited(variables: dict[str, str]) -> set[str]:
        session = await programs.session(environment={"PATH": "/usr/bin:/bin", **variables})
        call_id = await programs.submit(session, text="true x")
        await programs.approve(call_id)
        order = programs.executor.orders[await programs.ordered(call_id)]
        return {name for name in variables if name in order.environment}

    for value in foreign:
        assert await inherited({"BASH_ENV": value, "ENV": value, "KEPT": value}) == {"KEPT"}, value
    assert await inherited({"PS4": "$(touch x)", "SHELLOPTS": "xtrace"}) == set()
    assert await inherited({"BASH_ENV": str(own), "ENV": str(own)}) == {"BASH_ENV", "ENV"}


async def test_approved_commands_start_as_shown(programs: Bench) -> None:
    session = await programs.session(environment={"PATH": "/usr/bin:/bin", "PAGER": "less"})
    call_id = await programs.submit(session, text="true x")
    await programs.approve(call_id)
    order = programs.executor.orders[await programs.ordered(call_id)]
    assert order.spec.command.kind == "shell"
    assert order.environment["PAGER"] == "less"


@pytest.fixture
def processes() -> Iterator[list[int]]:
    """Two programs that an agent could be."""
    running = [subprocess.Popen(["sleep", "100"]) for _ in range(2)]
    yield [process.pid for process in running]
    for process in running:
        process.kill()
        process.wait()


async def remembered(bench: Bench, **hello: object) -> str:
    session = await bench.session(**hello)
    await bench.approve(await bench.submit(session, "true"), remember="exact_for_session")
    await bench.ordered(await bench.submit(session, "true"))
    return session


async def test_another_process_that_names_the_same_session_is_asked(bench: Bench, processes) -> None:
    session = await remembered(bench, key="claude 1", pid=processes[0])
    assert await bench.session(key="claude 1", pid=processes[1]) == session
    await bench.state(await bench.submit(session, "true"), "waiting")
    assert await bench.supervisor.grants() == ()


async def test_another_process_gets_no_variables_of_the_shell_before_it(bench: Bench, processes) -> None:
    session = await bench.session(key="claude 1", pid=processes[0])
    report = ShellReport(names=("PATH",), environment={"PATH": "/other"}, profile="/profile")
    environments = bench.supervisor.queries._environment_of.__self__  # type: ignore[attr-defined]
    for comes, expected in ((0, "/profile"), (1, "")):
        environments.learn(session, report)
        await bench.session(key="claude 1", pid=processes[comes])
        assert environments.profile_of(session) == expected


@pytest.mark.parametrize("comes_back", [0, 1])
async def test_a_closed_session_is_gone_on_with_by_its_own_process_alone(bench: Bench, processes, comes_back) -> None:
    session = await remembered(bench, key="claude 1", pid=processes[0])
    await bench.supervisor.close_session(session, "the connection was lost")
    assert [grant.session_id for grant in await bench.supervisor.grants()] == [session]
    assert await bench.session(key="claude 1", pid=processes[comes_back]) == session
    call_id = await bench.submit(session, "true")
    await bench.state(call_id, "waiting" if comes_back else "starting")


async def test_approvals_of_a_closed_session_can_be_revoked(bench: Bench, processes) -> None:
    session = await remembered(bench, key="claude 1", pid=processes[0])
    await bench.supervisor.close_session(session, "the connection was lost")
    (grant,) = await bench.supervisor.grants()
    await bench.supervisor.revoke(grant.id, HUMAN)
    assert await bench.session(key="claude 1", pid=processes[0]) == session
    await bench.state(await bench.submit(session, "true"), "waiting")


async def test_the_same_process_keeps_its_approvals_over_a_restart(bench: Bench, processes) -> None:
    session = await remembered(bench, key="claude 1", pid=processes[0])
    await bench.restart()
    assert await bench.session(key="claude 1", pid=processes[0]) == session
    await bench.ordered(await bench.submit(session, "true"))
