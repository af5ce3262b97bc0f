"""Hostile and broken machines at the far end of ssh: what they send is data, bounded, and never waited for in vain."""

import json
import os
import re
import shlex
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.cli.terminal import Terminal
from tests.cli.test_other_machines import Desk
from tests.interpreter import PYTHON
from tests.outside import outside_only
from tests.rows import each_row
from tests.ssh_server import loopback_server, needs_sshd
from whisper_tui.cli import far_output
from whisper_tui.cli.far_output import FarJsonLines, FarText, LastWords, NoJson, TooMuch, json_text
from whisper_tui.cli.other_machines import SshHost
from whisper_tui.model.errors import Unavailable
from whisper_tui.system.ssh_command import ssh_command

pytestmark = [outside_only, pytest.mark.skipif(sys.platform != "linux", reason="shell scripts in the place of ssh")]

HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b[31mred\x1b[0m \u202egnp.exe\u2066 back\rover é e\u0301 \x9b2J end"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Matches what must reach no terminal."""


class Far:
    """A desk, and a program in the place of its ssh."""

    def __init__(self, root: Path) -> None:
        self.desk = Desk(root / "desk", [], "[hosts.evil]\n[hosts.good]\n")
        self._ssh = self.desk.root / "bin" / "ssh"
        self._notes = root / "words"

    def is_(self, *, evil: str, good: str = "true") -> None:
        """Say, as Python or as shell text, what the machines do."""
        program = self._ssh.with_name("far.py")
        program.write_text(evil)
        self._ssh.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {self._notes}\n"
            f'case " $* " in *" evil "*) exec {PYTHON} {program} ;; *) {good} ;; esac\n'
        )
        self._ssh.chmod(self._ssh.stat().st_mode | stat.S_IXUSR)

    def words(self) -> list[str]:
        """The words that ssh was started with at last."""
        return self._notes.read_text().split("\n")


@pytest.fixture
def far(tmp_path):
    found = Far(tmp_path)
    yield found
    found.desk.close()


def says(text: str, *, also: str = "") -> str:
    """A program that prints a text on both streams."""
    data = text.encode("utf-8", "surrogateescape")
    return f"import os, sys, time\nos.write(1, {data!r})\nos.write(2, {data!r})\n{also}\n"


@pytest.mark.parametrize(
    "words",
    [
        "list --host evil",
        "list --host all",
        "show evil:7",
        "history --host evil",
        "status --host evil",
        "rules list --host evil",
        "approve evil:7",
        "deny evil:7 no",
        "export --host evil --format markdown",
        "export --host all --format markdown",
        "logs evil:7 --stream err",
    ],
)
@pytest.mark.few(3)
def test_no_escape_of_a_far_machine_reaches_our_streams(far, words):
    far.is_(evil=says(HOSTILE + "\n"))
    answer = far.desk.run(*words.split())
    if words.startswith("logs"):
        # Output of a command is data, byte by byte where no terminal is; the terminal is tried below.
        assert HOSTILE.replace("\r", "\n") in answer.stdout  # as Python reads the lines of a program
        return
    assert "title" in answer.stdout + answer.stderr and "e\u0301" in answer.stdout + answer.stderr
    assert not RAW.search(answer.stdout + answer.stderr), words


@pytest.mark.parametrize("words", ["show evil:7", "logs evil:7", "list --host evil", "list --json --host evil"])
@pytest.mark.few(1)
def test_no_escape_of_a_far_machine_reaches_our_terminal(far, words):
    far.is_(evil=says(json.dumps([HOSTILE], ensure_ascii=False) + "\n" if "--json" in words else HOSTILE + "\n"))
    program = [*PROGRAM, *words.split(), "--home", str(far.desk.root)]
    with Terminal(program, far.desk.environment, far.desk.workspace) as terminal:
        terminal.shows(b"end")
        terminal.ends()
        shown = terminal.text
    assert b"\x1b]" not in shown and "\x9b".encode() not in shown and "\u202e".encode() not in shown
    # The output of a command keeps its colours, at home as well.
    assert (b"\x1b[31m" in shown) is words.startswith("logs")


def test_output_of_a_far_machine_is_shown_while_it_comes(far):
    goes_on = far.desk.root / "goes-on"
    wait = f"\nwhile not os.path.exists({str(goes_on)!r}): time.sleep(0.02)\nos.write(1, b'second\\n')"
    for words in ("show evil:7", "logs -f evil:7"):
        goes_on.unlink(missing_ok=True)
        far.is_(evil=says("first ", also=wait))
        process = far.desk.start(*words.split(), stdin=-3)
        assert process.stdout is not None
        assert process.stdout.read(6) == "first "
        goes_on.touch()
        assert process.stdout.read().endswith("second\n")
        assert process.wait(ANSWER_S) == 0


ENDLESS = "import os\nwhile True: os.write({stream}, b'[' * 65536)\n"


@pytest.mark.parametrize("words", ["list --host all", "history --host all", "list --json --host evil"])
@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.few(1)
def test_an_endless_answer_is_ended_and_its_machine_named(far, words, stream, monkeypatch):
    far.is_(evil=ENDLESS.format(stream=stream), good="date +%s")
    process = far.desk.start(*words.split(), stdin=-3)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, psutil.Process(process.pid).memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.02)
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 3, err
    assert "machine evil sent" in err and "67,108,864 bytes" in err
    assert most < 600 * 1024 * 1024 and "Traceback" not in err
    children = psutil.Process().children(recursive=True)
    living = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
    assert not [each for each in living if "far.py" in " ".join(each.cmdline())]


def test_an_endless_line_is_no_line_of_json():
    lines = FarJsonLines()
    with pytest.raises(TooMuch):
        for _ in range(far_output.LARGEST_ANSWER // 2**20 + 1):
            lines.feed(b"[" * 2**20)


def test_the_answers_of_all_machines_are_bounded_together():
    allowance = far_output.Allowance(10)
    allowance.take(10)
    with pytest.raises(TooMuch):
        allowance.take(1)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("no json", "list --json --host evil"),
        ("[" * 100_000, "list --json --host evil"),
        ("[1] [2]", "show evil:7 --json"),
        ("[NaN]", "status --json --host evil"),
        ('["\x1b]0;x\x07"]', "list --json --host evil"),
        ("{}\nno json", "export --format jsonl --host evil"),
        ("no json", "story s1 --json --host evil"),
        ("no json", "list --json --host all"),
        ("[3, null]", "history --json --host all"),
        ('[{"submitted_at": "now"}]', "history --host all"),
        ('[{"submitted_at": 1, "id": [], "state": {}}]', "history --host all"),
        ("3", "export --format jsonl --host all"),
    ],
)
@pytest.mark.few(3)
def test_an_answer_that_is_no_json_is_named_and_not_handed_on(far, sent, words):
    far.is_(evil=f"print({sent!r})\nprint(1)" if "all" in words else f"print({sent!r})", good="echo '[]'; date +%s")
    answer = far.desk.run(*words.split())
    assert answer.returncode == 3, answer.stdout + answer.stderr
    assert "machine evil has sent text that is no JSON" in answer.stderr
    assert "defect" not in answer.stderr
    if "history --host" not in words:
        for document in [answer.stdout] if "jsonl" not in words else answer.stdout.splitlines():
            assert not document or json.loads(document) in ([], {}, None), answer.stdout


def test_hidden_characters_of_json_are_escaped_as_json_does(far):
    rows = [{"id": "1", "command": "a\u202eb\x9bc\x7f é \U000e0041"}]
    far.is_(evil=f"print({json.dumps(rows, ensure_ascii=False)!r})")
    answer = far.desk.run("list", "--json", "--host", "evil")
    assert json.loads(answer.stdout) == rows, answer.stderr
    assert not RAW.search(answer.stdout) and "\\u202e" in answer.stdout and "é" in answer.stdout
    assert json_text('["plain"]\n') == '["plain"]\n'


TEXT = "a\u202eé e\u0301\u0301\u0301\u0301 x\r\ny\rz \x1b[31m 漢字 \U0001f600\tq\u0301\n"


@each_row("size", [1, 2, 3, 5, 7])
def test_text_that_is_cut_anywhere_is_shown_like_the_whole_text(size):
    def shown(size: int) -> str:
        text, data = FarText(), TEXT.encode()
        pieces = [text.feed(data[at : at + size]) for at in range(0, len(data), size)]
        return "".join([*pieces, text.feed(b"", last=True)])

    assert shown(size) == shown(len(TEXT.encode()))
    assert "e\u0301\u0301\u0301⟨U+0301⟩ x\ny␍z ␛[31m 漢字 \U0001f600    q\u0301\n" in shown(size)


def test_lines_of_json_are_checked_and_shown_one_by_one():
    lines = FarJsonLines()
    assert lines.feed(b'{"a": 1}\n{"b"') == '{"a": 1}\n'
    assert lines.feed(': "\u202e"}\n'.encode()) == '{"b": "\\u202e"}\n'
    lines.feed(b"no")
    with pytest.raises(NoJson):
        lines.feed(b"", last=True)


def test_what_a_user_types_at_a_terminal_there_can_be_taken_back():
    text = FarText(echoes=True)
    assert text.feed(b"Go on? n\b") + text.feed(b" \by\r") + text.feed(b"\n") == "Go on? n\b \by\r\n"
    assert text.feed(b"\b\x1b[2J") == "␈␛[2J"


@pytest.mark.slow
def test_a_machine_without_whisper_tui_is_named_with_what_to_do(far):
    far.is_(evil="import sys\nprint('whisper-tui: 1: exec: whisper-tui: not found', file=sys.stderr)\nsys.exit(127)\n")
    for words in ("list --host evil", "list --host all", "show evil:7", "list --json --host evil"):
        answer = far.desk.run(*words.split())
        assert answer.returncode == 3
        assert "machine evil has no whisper-tui" in answer.stderr and "whisper-tui bring evil" in answer.stderr, words


@pytest.mark.slow
def test_ssh_neither_asks_a_script_nor_waits_for_a_silent_machine(far):
    far.is_(evil="pass")
    for words in ("list --host evil", "approve evil:7", "logs -f evil:7", "list --host all", "bring evil --yes"):
        far.is_(evil="pass", good="exit 0")
        far.desk.run(*words.split())
        given = far.words()
        for option in ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"):
            assert option in given, (words, option)
    assert "BatchMode=yes" not in ssh_command("gpu1", "true", may_ask=True)


def test_all_that_leads_to_another_machine_is_started_with_the_same_options():
    package = Path(far_output.__file__).parent.parent
    writes = re.compile(r"""["']ssh["'],\s*(?:\*|["']-)""")
    found = [path.name for path in package.rglob("*.py") if writes.search(path.read_text())]
    assert found == ["ssh_command.py"]


def test_a_far_machine_that_talks_without_end_fills_neither_disk_nor_memory(far, monkeypatch):
    far.is_(
        evil="import os\nfor _ in range(2000): os.write(2, b'x' * 65536)\n"
        "os.write(2, b'\\n\\x1b[2Jlast words.\\n')\nos._exit(9)"
    )
    monkeypatch.setenv("PATH", far.desk.environment["PATH"])
    host = SshHost("evil", "evil", "")
    with host.connect():
        process, said = host._open[-1]
        process.wait(ANSWER_S)
        assert str(host.explain(Unavailable("lost"))) == "␛[2Jlast words"
        assert len(said._kept) <= far_output.LAST_WORDS
    host.close()


def test_the_last_words_are_there_while_a_process_still_holds_the_stream():
    read, write = os.pipe()
    os.write(write, b"first\nlast\n")
    with os.fdopen(read, "rb") as stream:
        assert LastWords(stream).line() == "last"
        os.close(write)


MARK = "whisper-tui bring: "


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (f"print({MARK!r} + '[' * 100000)", "cannot be read"),
        (f"print({MARK!r} + '3')", "cannot be read"),
        (f'print({MARK!r} + \'{{"found": {{"now": 3}}}}\')', "cannot be read"),
        (f'print({MARK!r} + \'{{"failed": "\\\\u001b[2J" }}\')', "nothing was installed on evil: ␛[2J"),
        ("while True: os.write(1, b'x' * 65536)", "sent more than 1,048,576 bytes"),
        ("os.write(2, b'\\x1b[2Jno\\n'); os._exit(3)", "so nothing was installed: ␛[2Jno"),
    ],
)
@pytest.mark.few(1)
def test_bring_survives_every_answer(far, sent, said):
    far.is_(evil=f"import os, sys\n{sent}\n")
    answer = far.desk.run("bring", "evil", "--yes")
    assert said.lower() in answer.stderr.lower() and "defect" not in answer.stderr
    assert answer.returncode == 3 and not RAW.search(answer.stderr)


@pytest.mark.slow
@needs_sshd
def test_the_filters_hold_over_a_real_ssh(tmp_path):
    with loopback_server(tmp_path / "sshd", "evil") as ssh:
        program = tmp_path / "far.py"
        program.write_text(says(HOSTILE + "\n"))
        command = f"{PYTHON} {program} #"
        desk = Desk(tmp_path / "desk", [], f"[hosts.evil]\ncommand = {json.dumps(command)}\n")
        (desk.root / "ssh_config").write_text(ssh.config.read_text())
        answer = desk.run("show", "evil:7")
        assert "title" in answer.stdout and "title" in answer.stderr
        assert not RAW.search(answer.stdout + answer.stderr)
        words = shlex.join([*PROGRAM, "show", "evil:7", "--home", str(desk.root)])
        if os.geteuid() == 0:  # A server of another user gives no terminal.
            with Terminal(["sh", "-c", words], desk.environment, desk.workspace) as terminal:
                terminal.shows(b"end")
                terminal.ends()
                assert b"\x1b]" not in terminal.text and b"\x1b[31m" not in terminal.text
        desk.close()
