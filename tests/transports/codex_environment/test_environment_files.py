"""Files of Codex's environment: reading is answered at once, and every change waits for a decision."""

import base64
import os

import pytest

from tests.outside import outside_only
from tests.transports.codex_environment.conftest import encoded, uri

pytestmark = outside_only
ASK = 'read_only = false\n[[ask]]\nname = "edits"\npath = ["**"]\n'


@pytest.fixture(autouse=True)
def each_edit_is_asked_about(place):
    (place.home / "config" / "rules.toml").write_text(ASK)


async def test_files_are_read_without_a_question_and_without_a_record(place):
    (place.workspace / "a.txt").write_text("content\n")
    async with place.codex() as codex:
        read = (await codex.ask("fs/readFile", path=uri(place.workspace / "a.txt"), sandbox=None))["result"]
        assert base64.b64decode(read["dataBase64"]) == b"content\n"
        about = (await codex.ask("fs/getMetadata", path=uri(place.workspace / "a.txt"), sandbox=None))["result"]
        assert (about["isFile"], about["isDirectory"], about["size"]) == (True, False, 8)
        listed = (await codex.ask("fs/readDirectory", path=uri(place.workspace), sandbox=None))["result"]
        assert listed["entries"] == [{"fileName": "a.txt", "isDirectory": False, "isFile": True}]
        real = (await codex.ask("fs/canonicalize", path=uri(place.workspace), sandbox=None))["result"]
        assert real["path"] == uri(os.path.realpath(place.workspace))
        missing = await codex.ask("fs/readFile", path=uri(place.workspace / "b.txt"), sandbox=None)
        assert missing["error"]["code"] == -32004
        assert await place.rows("history") == []


async def test_a_file_is_written_once_the_edit_is_approved_with_its_missing_directories(place):
    path = place.workspace / "new" / "deep" / "a.txt"
    async with place.codex() as codex:
        request = await codex.write_file(path, "hello\n")
        row = await place.call(lambda row: row["state"] == "waiting")
        assert [file["path"] for file in row["edits"]] == [str(path)]
        assert not codex.has_answer(request) and not path.exists()
        await place.run("approve", row["id"])
        assert (await codex.answer(request))["result"] == {}
        assert path.read_text() == "hello\n"
        await place.run("revert", row["id"])
        assert not path.exists()


async def test_a_denied_edit_changes_nothing_and_the_reason_is_in_the_error(place):
    path = place.workspace / "a.txt"
    path.write_text("old\n")
    async with place.codex() as codex:
        request = await codex.write_file(path, "new\n")
        await place.run("deny", await place.waiting(), "--reason", "Leave it.")
        assert "Nothing was changed. Reason: Leave it." in (await codex.answer(request))["error"]["message"]
    assert path.read_text() == "old\n"


@pytest.mark.slow
async def test_a_file_that_changes_while_it_waits_is_not_overwritten(place):
    path = place.workspace / "a.txt"
    path.write_text("old\n")
    async with place.codex() as codex:
        request = await codex.write_file(path, "new\n")
        first = await place.waiting()
        path.write_text("meanwhile\n")
        await place.run("approve", first)
        # It is asked again, about the file as it is now.
        row = await place.call(lambda row: row["state"] == "waiting")
        assert not codex.has_answer(request)
        await place.run("deny", row["id"])
        assert "error" in await codex.answer(request)
    assert path.read_text() == "meanwhile\n"


@pytest.mark.slow
async def test_a_link_is_judged_and_written_by_its_target(place):
    outside = place.home.parent / "outside.txt"
    outside.write_text("old\n")
    (place.workspace / "link").symlink_to(outside)
    (place.home / "config" / "rules.toml").write_text("read_only = false\n")
    async with place.codex() as codex:
        request = await codex.write_file(place.workspace / "link", "new\n")
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["edits"][0]["real"] == str(outside)
        await place.run("approve", "--yes", row["id"])
        assert (await codex.answer(request))["result"] == {}
    assert outside.read_text() == "new\n" and (place.workspace / "link").is_symlink()


@pytest.mark.slow
async def test_a_file_is_removed_as_an_edit_and_a_directory_by_a_command(place):
    path, tree = place.workspace / "a.txt", place.workspace / "tree"
    path.write_text("old\n")
    (tree / "below").mkdir(parents=True)
    async with place.codex() as codex:
        params = {"recursive": False, "force": False, "sandbox": None}
        request = await codex.send("fs/remove", {"path": uri(path), **params})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["edits"][0]["action"] == "deletes" and path.exists()
        await place.run("approve", row["id"])
        assert (await codex.answer(request))["result"] == {} and not path.exists()
        request = await codex.send("fs/remove", {"path": uri(tree), **params, "recursive": True})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == ["rm", "-r", "--", str(tree)]
        await place.run("deny", row["id"], "--reason", "Keep it.")
        assert "Keep it." in (await codex.answer(request))["error"]["message"] and tree.exists()
        gone = await codex.ask("fs/remove", path=uri(path), **params)
        assert gone["error"]["code"] == -32004


@pytest.mark.slow
async def test_directories_and_copies_are_made_by_commands(place):
    (place.workspace / "a.txt").write_text("content\n")
    async with place.codex() as codex:
        request = await codex.send("fs/createDirectory", {"path": uri(place.workspace / "x" / "y"), "recursive": True})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == ["mkdir", "-p", "--", str(place.workspace / "x" / "y")]
        await place.run("approve", row["id"])
        assert (await codex.answer(request))["result"] == {} and (place.workspace / "x" / "y").is_dir()
        names = {"sourcePath": uri(place.workspace / "a.txt"), "destinationPath": uri(place.workspace / "x" / "b.txt")}
        request = await codex.send("fs/copy", {**names, "recursive": False})
        await place.run("approve", await place.waiting())
        assert (await codex.answer(request))["result"] == {}
        assert (place.workspace / "x" / "b.txt").read_text() == "content\n"
        into = {**names, "destinationPath": uri(place.workspace / "x")}
        assert "is a directory" in (await codex.ask("fs/copy", **into, recursive=True))["error"]["message"]


async def test_an_edit_that_no_human_could_judge_is_refused(place):
    edits = [
        ({"path": "file:///x", "dataBase64": base64.b64encode(b"\xff\xfe").decode()}, "no UTF-8 text"),
        ({"path": "file:///x", "dataBase64": "?"}, "no valid base64"),
        ({"path": "http://host/x", "dataBase64": encoded("x")}, "file URI of this machine"),
        ({"path": "file://host/x", "dataBase64": encoded("x")}, "file URI of this machine"),
        ({"path": "file:///x%00", "dataBase64": encoded("x")}, "no valid text"),
        ({"path": 3, "dataBase64": encoded("x")}, "must be a file URI"),
    ]
    async with place.codex() as codex:
        for params, said in edits:
            assert said in (await codex.ask("fs/writeFile", **params))["error"]["message"], params
        assert await place.rows("history") == []
