"""What would run at a place is looked up there, in a few round trips, and what comes from there is data."""

import asyncio
import base64
import json
import os
import random
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.places.far_root import FarRoot, SamePlace, User, another_root
from whisper_tui.effects import effects_of
from whisper_tui.effects.git_repository import find_repository
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.approvals.resolve import Examined, found_code, resolve
from whisper_tui.supervisor.places import far_files, place_files
from whisper_tui.supervisor.places.frames import Frame
from whisper_tui.supervisor.places.place_files import FarUser, PlaceFiles, examine_at
from whisper_tui.system import host_files

FEW = 5
"""Round trips that an examination of an ordinary command needs at most."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def command(text: str, cwd: str) -> CommandSpec:
    return CommandSpec(command=Shell(text=text), cwd=cwd)


def examining(text: str, cwd: str) -> Callable[[FarUser], Examined]:
    """The examination of a command, as the judgement makes it."""
    spec = command(text, cwd)

    def examine(user: FarUser) -> Examined:
        resolved = resolve(spec, user.environment, ("/own",), root=cwd)
        return Examined(resolved, found_code(resolved, spec, cwd, user.environment))

    return examine


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with scripts, links, a repository and a linked work tree."""
    made = tmp_path / "project"
    for name, text in {
        "build.sh": "#!/bin/bash\nrm -rf out\nmake all\n",
        "run.py": "print(1)\n",
        "Makefile": "all:\n\tcurl -d @x https://example.org\n",
        "package.json": json.dumps({"scripts": {"test": f"rm -rf {tmp_path}/cache"}}),
        "../cache/old.txt": "old\n",
        "src/a.txt": "one\n",
        "src/b.txt": "two\n",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (made / "build.sh").chmod(0o755)
    (made / "link").symlink_to("/etc")
    (made / "loop").symlink_to("loop")
    subprocess.run(["git", "init", "-q"], cwd=made, check=True)
    (made / ".git/hooks/pre-commit").write_text("#!/bin/sh\necho checked\n")
    (made / ".git/hooks/pre-commit").chmod(0o755)
    return made


COMMANDS = [
    "git status",
    "git commit -am x",
    "ls -la src; cat src/*.txt ~/.bashrc",
    "./build.sh && make all",
    "python3 run.py < src/a.txt > src/c.txt",
    "cd src && cat ../build.sh | sh",
    "cat link/passwd loop /proc/self/environ",
    "npm test; bash -c 'source build.sh'",
    "no-such-program; ./absent",
    "cp build.sh ~/.bashrc; chmod +x run.py",
    "rm -rf src",
    "cat 'a\\x00b' " + "x" * 5000,
]


@pytest.mark.parametrize("text", COMMANDS)
async def test_a_place_with_the_files_of_this_machine_gives_the_same_result_in_few_round_trips(
    workspace: Path, threads: ThreadPoolExecutor, text: str
):
    user = User(home=str(Path.home()), host=os.uname().nodename, environment=dict(os.environ))
    examine = examining(text, str(workspace))
    async with FarRoot(user=user) as far:
        found = await examine_at(far, examine, threads, (str(workspace),))
        assert far.asked <= FEW
    assert found == examine(user)


@pytest.mark.parametrize("text", [text for text in COMMANDS if not text.startswith(("git", "rm"))])
async def test_effects_are_the_same_as_well(workspace: Path, threads: ThreadPoolExecutor, text: str):
    user = User(home=str(Path.home()), host=os.uname().nodename, environment=dict(os.environ))

    def state(user: FarUser) -> Any:
        return effects_of(
            command(text, "/").command, str(workspace), (str(workspace),), user.environment, budget_s=10.0
        )

    async with FarRoot(user=user) as far:
        found = await examine_at(far, state, threads, (str(workspace),))
        assert far.asked <= FEW
    assert found == state(user)


@pytest.fixture
def far_tree(tmp_path: Path) -> Path:
    """The root directory of a place with other files than this machine."""
    root = tmp_path / "far"
    for name, text in {
        "opt/tools/train": "#!/bin/bash\nrm -rf /data/old\n",
        "usr/bin/bash": "a shell",
        "home/me/project/data.txt": "far\n",
        "home/me/.bashrc": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    (root / "home/me/current").symlink_to("/home/me/project")
    (root / "home/me/project/escape").symlink_to("/home/me/.bashrc")
    return root


@another_root
async def test_programs_scripts_and_links_are_those_of_the_place(far_tree: Path, threads: ThreadPoolExecutor):
    user = User(environment={"PATH": "/opt/tools:/usr/bin", "HOME": "/home/me"})
    async with FarRoot(far_tree, user) as far:
        found = await examine_at(far, examining("train data.txt > escape; python3 x.py", "/home/me/current"), threads)
    resolved = found.resolved
    assert resolved.problem is None
    assert resolved.cwd == "/home/me/project"
    assert resolved.program == "/usr/bin/bash"
    assert resolved.commands[0].program == "/opt/tools/train"
    assert resolved.commands[1].missing  # python3 is here, and not there
    assert "/home/me/.bashrc" in resolved.sensitive  # behind the link
    status = (far_tree / "opt/tools/train").stat()
    assert resolved.files["/opt/tools/train"].split(".")[1] == f"{status.st_ino:x}"


@another_root
async def test_what_is_only_on_this_machine_is_not_there(far_tree: Path, workspace: Path, threads: ThreadPoolExecutor):
    async with FarRoot(far_tree) as far:
        found = await examine_at(far, examining("bash build.sh", str(workspace)), threads)
    assert found.resolved.problem == f"the working directory {workspace} does not exist"
    assert not found.resolved.contents


@another_root
async def test_scripts_there_are_read_and_digested_there(far_tree: Path, threads: ThreadPoolExecutor):
    async with FarRoot(far_tree) as far:
        found = await examine_at(far, examining("bash /opt/tools/train", "/home/me/project"), threads)
        before = found.resolved.contents["/opt/tools/train"]
        assert [risk.id for code in found.code for risk in code.risks]
        (far_tree / "opt/tools/train").write_text("echo changed\n")
        again = await examine_at(far, examining("bash /opt/tools/train", "/home/me/project"), threads)
    assert again.resolved.contents["/opt/tools/train"] != before


async def test_nothing_runs_at_a_place_to_describe_a_command(workspace: Path, threads: ThreadPoolExecutor):
    def state(user: FarUser) -> Any:
        return effects_of(command("git reset --hard", "/").command, str(workspace), (str(workspace),), user.environment)

    async with FarRoot() as far:
        found = await examine_at(far, state, threads)
    assert any("git is not run at another place" in each.reason for each in found.unknown)


async def test_what_was_assumed_until_a_place_answered_is_not_remembered(workspace: Path, threads: ThreadPoolExecutor):
    subprocess.run(["git", "add", "."], cwd=workspace, check=True)
    async with FarRoot() as far:
        found = await examine_at(far, lambda _: find_repository(str(workspace)), threads)
    assert found == find_repository(str(workspace))
    assert found[1]


class Scripted(SamePlace):
    """A place that answers with whatever a test says."""

    def __init__(self, answer: Callable[[list[Any]], bytes]) -> None:
        super().__init__()
        self._answer = answer

    async def ask(self, do: str, payload: bytes = b"") -> Frame:
        self.asked += 1
        return Frame({}, self._answer(json.loads(payload)))


def packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode())


FILE = [0o100644, 1, 2, 1, 0, 0, 3, 4, 5]
LINK = [0o120777, 1, 2, 1, 0, 0, 3, 4, 5]

BAD_LOOKS: list[Any] = [
    [FILE, None, None, "/x"],
    [FILE[:-1], None, None, "/x", True],
    [[*FILE[:-1], -1], None, None, "/x", True],
    [[*FILE[:-1], 1 << 70], None, None, "/x", True],
    [[*FILE[:-1], "5"], None, None, "/x", True],
    [FILE, None, None, "x", True],
    [FILE, None, None, "/x\0y", True],
    [FILE, None, 7, "/x", True],
    [LINK, None, "/y", "/y", True],
    [True, None, None, "/x", False],
    ["no", None, None, "/x", False],
    [FILE, None, None, "/" + "x" * 5000, True],
    {},
    None,
    "look",
]


@pytest.mark.parametrize("value", BAD_LOOKS)
async def test_an_answer_that_no_file_has_is_refused(threads: ThreadPoolExecutor, value: Any):
    far = Scripted(lambda asked: packed([[value] for _ in asked]))
    with pytest.raises(Unavailable, match="cannot be asked about its files"):
        await examine_at(far, lambda _: host_files.exists("/x"), threads)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("names", ["a", "../b"]),
        ("names", ["a", ".."]),
        ("names", ["a\0"]),
        ("names", [""]),
        ("names", "abc/"),
        ("read", ["!", ""]),
        ("read", [base64.b64encode(b"x" * 2000).decode(), ""]),
        ("read", [None]),
        ("digest", ["g" * 32, 1]),
        ("digest", ["a" * 32, -1]),
        ("tree", [1, 2, True, ["relative"], []]),
        ("tree", [-1, 2, True, [], []]),
        ("tree", [1, 2]),
    ],
)
async def test_other_answers_are_refused_as_well(threads: ThreadPoolExecutor, kind: str, value: Any):
    ask = {
        "names": lambda _: host_files.names("/x", 100),
        "read": lambda _: host_files.read_regular("/x", 1000),
        "digest": lambda _: host_files.digest("/x", 1000),
        "tree": lambda _: host_files.tree("/x", 1.0),
    }[kind]
    with pytest.raises(Unavailable, match="cannot be asked about its files"):
        await examine_at(Scripted(lambda asked: packed([[value] for _ in asked])), ask, threads)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no zlib",
        packed({}),
        packed([]),
        packed([None]),
        packed([[0], [0]]),
        zlib.compress(b"[" * 100_000),
        zlib.compress(b" " * (place_files.LARGEST_ANSWER + 1)),
    ],
)
async def test_a_request_that_is_not_answered_is_not_repeated_for_ever(threads: ThreadPoolExecutor, answer: bytes):
    far = Scripted(lambda _: answer)
    with pytest.raises(Unavailable):
        await examine_at(far, lambda _: host_files.exists("/x"), threads)
    assert far.asked == 1


async def test_random_changes_of_answers_end_in_a_result_or_are_refused(workspace: Path, threads: ThreadPoolExecutor):
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    odd: list[Any] = [
        None,
        True,
        -1,
        1 << 65,
        "",
        "/",
        "..",
        "a\0",
        "\ud800",
        [],
        {},
        0.5,
        "/x" * 3000,
        [FILE],
        "é" * 9,
    ]

    def changed(value: Any) -> Any:
        if chance.random() < 0.02:
            return chance.choice(odd)
        return [changed(each) for each in value] if isinstance(value, list) else value

    def answer(asked: list[Any]) -> bytes:
        right = json.loads(zlib.decompress(far_files.answer(json.dumps(asked).encode())))
        return packed(changed(right))

    for text in COMMANDS * 5:
        try:
            found = await examine_at(Scripted(answer), examining(text, str(workspace)), threads)
        except Unavailable:
            continue
        assert isinstance(found, Examined), f"seed {seed}"


async def test_a_place_that_leads_from_one_question_to_the_next_for_ever_is_given_up(threads: ThreadPoolExecutor):
    def climb(_: FarUser) -> str:
        path = "/x"
        while host_files.exists(path):
            path += "/x"
        return path

    far = Scripted(lambda asked: packed([[[FILE, None, None, path, True]] for _, path in asked]))
    with pytest.raises(Unavailable, match=f"asked about files {place_files.MOST_ROUNDS} times"):
        await examine_at(far, climb, threads)
    assert far.asked == place_files.MOST_ROUNDS


async def test_a_place_that_does_not_answer_holds_up_for_a_bounded_time(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
):
    class Silent(SamePlace):
        async def ask(self, do: str, payload: bytes = b"") -> Frame:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(place_files, "MOST_SECONDS", 0.05)
    with pytest.raises(Unavailable, match="has not said within"):
        await examine_at(Silent(), lambda _: host_files.exists("/x"), threads)


async def test_answers_of_a_place_that_was_made_anew_meanwhile_are_not_mixed(threads: ThreadPoolExecutor):
    class Renewed(Scripted):
        async def ask(self, do: str, payload: bytes = b"") -> Frame:
            assert self.hello is not None
            self.hello = replace(self.hello, host="another")
            return await super().ask(do, payload)

    far = Renewed(lambda asked: packed([[[FILE, None, None, path, True]] for _, path in asked]))
    with pytest.raises(Unavailable):
        await examine_at(far, lambda _: host_files.exists("/x"), threads)


async def test_a_place_that_is_away_is_not_guessed_about(threads: ThreadPoolExecutor):
    far = SamePlace()
    far.hello = None
    with pytest.raises(Unavailable, match="gpu1 is unreachable"):
        await examine_at(far, lambda _: pytest.fail("it was examined"), threads)


async def test_an_error_of_the_examination_itself_is_its_own(threads: ThreadPoolExecutor):
    def fail(_: FarUser) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await examine_at(SamePlace(), fail, threads)


def test_a_right_guess_and_a_wrong_one_lead_to_the_same_result():
    user = User()
    answers: Mapping[str, Any] = {"/usr/bin/x": [2, None, None, "/usr/bin/x", False]}
    files = PlaceFiles("gpu1", user, ("/work",))
    with host_files.asking(files):
        assert host_files.is_executable("/usr/bin/x")  # guessed
        assert host_files.is_directory("/work")
        assert not files.is_complete
        asked = json.loads(files.questions())
        files.learn(packed([[answers.get(path, [2, None, None, path, False])] for _, path in asked]))
        assert files.is_complete
        assert not host_files.is_executable("/usr/bin/x")
        assert not host_files.is_directory("/work")


def test_a_batch_is_answered_as_far_as_it_has_room_and_the_rest_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(far_files, "LARGEST_ANSWERS", 1500)
    paths = [tmp_path / f"{number}" for number in range(5)]
    for path in paths:
        path.write_bytes(os.urandom(1000))
    files, rounds = PlaceFiles("gpu1", User()), 0
    with host_files.asking(files):
        while True:
            found = [host_files.read_regular(str(path), 2000)[0] for path in paths]
            if files.is_complete:
                break
            rounds += 1
            files.learn(far_files.answer(files.questions()))
    assert found == [path.read_bytes() for path in paths]
    assert rounds == 3
