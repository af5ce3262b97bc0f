"""`export` writes the forms to standard output or to a private file, for calls, sessions or everything."""

import json
import stat

import pytest

from tests.outside import outside_only

pytestmark = outside_only


@pytest.mark.slow
def test_every_form_of_a_call_that_ran(instance):
    call = instance.call("execute_command", command="sh", args=["-c", "echo hello; exit 3"])
    instance.run("approve", "1")
    call.communicate(timeout=90)
    (row,) = [json.loads(line) for line in instance.run("export", "--format", "jsonl").stdout.splitlines()]
    assert (row["id"], row["exit_code"], row["session"]) == ("1", 3, "command line")
    header, *events = map(json.loads, instance.run("export", "1", "--format", "asciicast").stdout.splitlines())
    assert header["version"] == 2 and [event[2] for event in events] == ["hello\r\n"]
    header, *events = map(json.loads, instance.run("export", "1", "--format", "asciicast3").stdout.splitlines())
    assert header["version"] == 3 and events[-1][1:] == ["x", "3"]
    file = instance.workspace / "report.md"
    answer = instance.run("export", "--session", "command line", "--format", "markdown", "-o", "report.md")
    assert answer.returncode == 0 and answer.stdout == "" and "bytes were written to report.md" in answer.stderr
    assert "### Call 1: exit code 3" in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o600
    page = instance.workspace / "story.html"
    answer = instance.run("story", "command line", "--html", "-o", "story.html")
    assert answer.returncode == 0 and answer.stdout == "" and "bytes were written to story.html" in answer.stderr
    assert "failed with exit code 3" in page.read_text() and stat.S_IMODE(page.stat().st_mode) == 0o600
    assert instance.run("story", "command line", "--html").stdout == page.read_text()


@pytest.mark.slow
def test_failed_exports_are_one_sentence(instance):
    for words, code, sentence in (
        (("export", "9", "--format", "jsonl"), 4, "There is no call 9"),
        (("export", "--format", "asciicast"), 2, "A recording contains exactly one call"),
        (("export", "--format", "markdown"), 2, "A report is about a session"),
        (("export", "--session", "x", "1", "--format", "jsonl"), 2, "Name calls or a session"),
        (("story", "x", "-o", "story.html"), 2, "Only a page is written to a file"),
        (("export", "--session", "nobody", "--format", "jsonl"), 2, "There is no session 'nobody'"),
    ):
        answer = instance.run(*words)
        assert answer.returncode == code
        assert answer.stderr.startswith(f"whisper-tui: {sentence}") and answer.stderr.count("\n") == 1
