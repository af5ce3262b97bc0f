"""Record what the real clients send to whisper_tui, and what they are answered: `python -m tests.clients.record`.

Each client plays the same scenes twice: through its hook, and through MCP. Codex plays them once more in our
environment. Everything that differs from run to run has a fixed value in the recordings, so recording again changes
nothing. `tests/transports/test_recordings.py` and `tests/transports/codex_environment/` replay them.
"""

import base64
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.clients import tap
from tests.clients.conversation import play
from tests.clients.install import PLACE, ROOT, missing, versions
from tests.clients.model.script import Call
from tests.clients.programs import PROGRAMS, Program
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.programs.kilo import Kilo
from tests.clients.programs.kimi import KimiWithPrompt
from tests.clients.programs.qwen import Qwen
from tests.clients.scenes import Approved, DeniedFor, Edited, NotDecided, Scene
from tests.clients.stage import LAUNCHER, Stage
from tests.clients.test_codex_executor import in_terminal
from tests.clients.test_edits import OLD, edit, fetch, read
from tests.clients.test_one_question import add_server, keep
from whisper_tui.agents.known_clients import profile_of

RECORDINGS = ROOT / "tests" / "transports" / "recordings"
RECORDED: tuple[Program, ...] = (*PROGRAMS, Qwen(), KimiWithPrompt(), Kilo())
REASON = "No: use `make test`."
ATTEMPTS = 3
"""How often a client is recorded that was too impatient for a busy machine."""

AS_ASKED = Scene("echo hi | tee approved-ran", Approved())
OTHERWISE = Scene("echo hi | tee asked-ran", Edited("echo hi"))
NO = Scene("touch denied-ran", DeniedFor(REASON))
EDIT = Scene("asked.txt", Approved())
READ = Scene(f"read {EDIT.command}", NotDecided())
FETCH = Scene("http://fetched.invalid/page", DeniedFor(REASON))
SERVER = Scene("keep this", Approved())
SCENES = {
    "a command is approved": AS_ASKED,
    "a command is changed": OTHERWISE,
    "a command is denied": NO,
    "an edit is approved": EDIT,
    "a fetch is denied": FETCH,
    "a tool of another server is approved": SERVER,
}
"""By what a recording calls them. Every command writes the same, so a replay needs no processes."""

TERMINAL = Scene("test -t 0 && read line; echo got $line | tee terminal-ran", Approved())
TYPED = Scene("good words", Approved())
"""The input of the terminal."""
IN_ENVIRONMENT = (AS_ASKED, OTHERWISE, NO, EDIT, TERMINAL)

RULES = '[[ask]]\nname = "as the tests want"\npath = "asked.txt"\n'
PROGRAMS_OF_OURS = r"(?=[^A-Za-z/]*(?:args[^A-Za-z/]*)?\b(?:hook|mcp|executor)\b)"
"""What follows the launcher in the settings of a client where the client itself starts it."""

OWN_VARIABLES = re.compile(r"(?:CLAUDE|CODEX|GEMINI|OPENCODE|COPILOT|QWEN|KIMI|KILO|AGENT|AI_AGENT)")
"""The beginnings of the names of variables that clients set."""


class Scrubber:
    """Gives everything that differs from run to run a fixed value."""

    def __init__(self, directory: Path, processes: Sequence[str]) -> None:
        stage = str(directory / "stage")
        self._fixed: list[tuple[re.Pattern[str], str]] = [
            (re.compile(re.escape(str(directory / "tap" / "whisper-tui"))), "/launcher/whisper-tui"),
            (re.compile(re.escape(stage)), "/stage"),
            # Some clients name a directory after another one.
            (re.compile(re.escape(re.sub(r"[^A-Za-z0-9]", "-", stage))), "-stage"),
            (re.compile(re.escape(stage.replace("/", "-"))), "-stage"),
            (re.compile(re.escape(str(LAUNCHER))), "/launcher/whisper-tui"),
            (re.compile(re.escape(str(PLACE))), "/clients"),
            (re.compile(re.escape(sys.executable)), "/python"),
            (re.compile(re.escape(str(ROOT))), "/checkout"),
            (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:9"),
            (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?"), "2026-01-01T00:00:00.000"),
            (re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d\b)?"), "2026-01-01T00-00"),
            (re.compile(r"/cc-socks/\d+"), "/cc-socks/1"),
            (re.compile(r"/tmp/claude-\d+"), "/tmp/claude-0"),
            (re.compile(r"/\d{4}/\d\d/\d\d/"), "/2026/01/01/"),
            (re.compile(r"toolu_\d{13}_\w+"), "toolu_1"),
            (re.compile(r"\b1[78]\d{11}\b"), "1767225600000"),
            (re.compile(r"\bexec (\d+)-[0-9a-f]+"), r"exec \1-0"),
            (re.compile(r"\b[0-9a-f]{32}\b"), "0" * 32),
            (re.compile(r"@[0-9a-f]{8}\b"), "@00000000"),
            (re.compile(r"(Process Group PGID: |\"pid\": )\d+"), r"\g<1>1"),
            *((re.compile(rf"(?<![\w.-]){process}(?![\w-])"), "1") for process in processes),
        ]
        self._ids: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """Return the text with fixed values."""
        for pattern, fixed in self._fixed:
            text = pattern.sub(fixed, text)
        text = re.sub(r"(?<![0-9a-zA-Z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", self._uuid, text)
        text = re.sub(r"\b(ses|msg|prt)_\w{26}\b", self._own, text)
        for known in self._ids:
            text = re.sub(rf"\b{known[:8]}\b", "00000000", text)
        return text

    def _uuid(self, found: re.Match[str]) -> str:
        number = len(self._ids) + 1
        return self._ids.setdefault(found[0], f"00000000-0000-4000-8000-{number:012}")

    def _own(self, found: re.Match[str]) -> str:
        number = len(self._ids) + 1
        return self._ids.setdefault(found[0], f"{found[1]}_{number:026}")


def call_in_hook(program: Program, workspace: Path, scene: Scene) -> Call:
    """Return the call with which the model of a client begins a scene, with the client's own tools."""
    path = str(workspace / EDIT.command)
    if scene is EDIT:
        return edit(program, path)
    if scene is READ:
        return read(program, path)
    if scene is FETCH:
        return fetch(program)
    return keep(program, scene) if scene is SERVER else program.shell(scene.command)


def hook_scenes(program: Program) -> list[Scene]:
    """Return the scenes that a client can play through its hook."""
    profile = profile_of(program.name)
    without = {FETCH} if program.name == "codex" else set()
    without |= set() if profile.hook.takes_result else {OTHERWISE}
    scenes = [scene for scene in SCENES.values() if scene not in without]
    if program.name in {"claude", "opencode", "qwen", "kimi", "kilo"}:
        scenes.insert(scenes.index(EDIT), READ)
    return scenes


def record_hook(program: Program, directory: Path) -> dict[str, Any]:
    """Play the scenes through the hook. Returns each start of the hook, in order, and what all of them share."""
    chosen = CodexInCodeMode() if program.name == "codex" else program

    def set_up(stage: Stage) -> None:
        (stage.workspace / EDIT.command).write_text(OLD)
        rules = stage.home / "config" / "rules.toml"
        rules.write_text(rules.read_text() + RULES)
        add_server(stage)
        _install(stage, directory, "--no-mcp")

    played = play(
        chosen,
        hook_scenes(program),
        directory / "stage",
        ask_for=lambda _, scene: call_in_hook(chosen, directory / "stage" / "workspace", scene),
        set_up=set_up,
    )
    assert played.exit_code == 0, played.written
    starts = tap.recorded(directory / "record")
    clean = Scrubber(directory, list(_processes(starts)))
    found = [_hook_start(program, start, clean) for start in starts]
    shared = set.intersection(*(set(start["environment"].items()) for start in found))
    for start in found:
        start["environment"] = dict(sorted(set(start["environment"].items()) - shared))
    return {"environment": dict(sorted(shared)), "starts": found}


def _hook_start(program: Program, start: dict[str, Any], clean: Scrubber) -> dict[str, Any]:
    given = json.loads(start["stdin"])
    scene = next((title for title, scene in SCENES.items() if _begins(given, scene)), None)
    stdout = json.loads(start["stdout"]) if start["stdout"] else None
    answer = {"code": start["code"], "stdout": stdout, "stderr": start["stderr"]}
    found = {
        **({} if scene is None else {"scene": scene}),
        "command": shlex.join(start["argv"]),
        "environment": _variables(program, start),
        "stdin": given,
        "answer": answer,
    }
    scrubbed: dict[str, Any] = json.loads(clean(json.dumps(found)))
    return scrubbed


def _begins(given: dict[str, Any], scene: Scene) -> bool:
    """True if the input is the question about a scene, and not an event after it."""
    # Copilot does not name its events, but only the one after a tool has a result.
    after = str(given.get("hook_event_name")) not in {"None", "PreToolUse", "BeforeTool"} or "toolResult" in given
    asked = json.dumps(given.get("tool_input", given.get("toolArgs")))
    quiet = given.get("tool_name") in {"Read", "read", "read_file"}
    return scene.command in asked and not after and not quiet


def record_server(program: Program, directory: Path) -> dict[str, Any]:
    """Play the scenes of commands through MCP. Returns the start of the server, and the lines of both sides."""
    scenes = (AS_ASKED, OTHERWISE, NO)

    def ask_for(_: Program, scene: Scene) -> Call:
        return program.mcp("run_shell_command", {"command": scene.command, "description": "Do as the script says"})

    played = play(
        program,
        scenes,
        directory / "stage",
        ask_for=ask_for,
        set_up=lambda stage: _install(stage, directory, "--no-hook"),
    )
    assert played.exit_code == 0, played.written
    lines = tap.recorded(directory / "record")
    clean = Scrubber(directory, list(_processes([line for line in lines if "argv" in line])))
    served = next(line["process"] for line in lines if line.get("message", {}).get("method") == "tools/call")
    start = next(line for line in lines if line["process"] == served)
    found = {
        "command": shlex.join(start["argv"]),
        "environment": _variables(program, start),
        "lines": [
            {line["sender"]: line["message"] if line["sender"] == "client" else summary(line["message"])}
            for line in lines
            if line["process"] == served and "sender" in line and not is_progress(line["message"])
        ],
    }
    scrubbed: dict[str, Any] = json.loads(clean(json.dumps(found)))
    return scrubbed


def record_executor(directory: Path) -> dict[str, Any]:
    """Play the scenes in our environment of Codex. Returns its requests with their answers, and what commands wrote."""
    program = CodexInCodeMode()

    def ask_for(_: Program, scene: Scene) -> Call:
        if scene is TERMINAL:
            return in_terminal(program, scene.command, f"{TYPED.command}\n")
        return call_in_hook(program, directory / "stage" / "workspace", scene)

    def set_up(stage: Stage) -> None:
        (stage.workspace / EDIT.command).write_text(OLD)
        rules = stage.home / "config" / "rules.toml"
        rules.write_text(rules.read_text() + RULES)
        _install(stage, directory, "--executor")

    played = play(program, IN_ENVIRONMENT, directory / "stage", ask_for=ask_for, set_up=set_up, also=[TYPED])
    assert played.exit_code == 0, played.written
    lines = [line for line in tap.recorded(directory / "record") if "code" not in line]
    start = next(line for line in lines if "argv" in line)
    clean = Scrubber(directory, list(_processes([start])))
    messages = [(line["sender"], line["message"]) for line in lines if "sender" in line]
    found = {
        "command": shlex.join(start["argv"]),
        "environment": _variables(program, start),
        "exchanges": _exchanges(messages, str(directory / "stage")),
        "commands": written_by_commands([message for sender, message in messages if sender == "server"]),
    }
    text = re.sub(r"\b\d+-(?=00000000-0000-4000-8000-)", "p-", clean(json.dumps(found)))
    scrubbed: dict[str, Any] = json.loads(text)
    return scrubbed


def _exchanges(messages: Sequence[tuple[str, dict[str, Any]]], stage: str) -> list[dict[str, Any]]:
    """Return each request and notification of Codex with its answer, once, without questions about other files."""
    answers = {message["id"]: message for sender, message in messages if sender == "server" and "id" in message}
    found: list[dict[str, Any]] = []
    ended = False
    for message in (message for sender, message in messages if sender == "client"):
        request = {"method": message["method"], "params": message["params"]}
        if not request["params"].get("path", f"file://{stage}").startswith(f"file://{stage}"):
            continue
        if message["method"] == "process/terminate":
            # Codex ends each command that is over, and does not wait for the answer about the last one.
            if ended:
                continue
            ended = True
        if "env" in request["params"]:
            # In an order of its own in each run.
            request["params"]["env"] = dict(sorted(request["params"]["env"].items()))
        exchange = {"client": request} | ({"server": in_short(answers[message["id"]])} if "id" in message else {})
        if exchange not in found:
            found.append(exchange)
    # Codex looks for several files at once, and they are not there.
    sought = sorted((each for each in found if "error" in each.get("server", {})), key=json.dumps)
    return [*found[:2], *sought, *(each for each in found[2:] if each not in sought)]


def in_short(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what Codex relies on in an answer of its environment: not words, versions, times and names of machines."""
    if "error" in answer:
        return {"error": answer["error"]["code"]}
    of_the_machine = {"executorVersion", "hostname", "sessionId", "modifiedAtMs", "createdAtMs", "shell"}

    def plain(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: "…" if key in of_the_machine else plain(each) for key, each in value.items()}

    return {"result": plain(answer["result"])}


def written_by_commands(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the output and the exit code of each process, by its id, from the notifications about it."""
    found: dict[str, Any] = {}
    for message in messages:
        params = message.get("params", {})
        kept = found.setdefault(params["processId"], {}) if "processId" in params else {}
        match message.get("method"):
            case "process/output":
                stream, text = params["stream"], base64.b64decode(params["chunk"]).decode()
                # Our own words to the model.
                kept[stream] = "…" if stream == "stderr" else kept.get(stream, "") + text
            case "process/exited":
                kept["exitCode"] = params["exitCode"]
            case "process/closed":
                kept["closed"] = True
    return found


def is_progress(message: dict[str, Any]) -> bool:
    """True for a line that depends on how long something took."""
    return message.get("method") in {"notifications/progress", "ping"}


def _began_twice(server: dict[str, Any]) -> bool:
    """True if the client did not wait long enough for its first answer, and asked in another way."""
    asked = [line["client"].get("method") for line in server["lines"] if "client" in line]
    return len({"server/discover", "initialize"}.intersection(asked)) > 1


TEXTS = frozenset({"text", "instructions", "message", "whisper-tui/told"})


def summary(message: Any) -> Any:
    """Return what a client relies on in an answer: not the words, the versions and the schemas of tools."""
    if isinstance(message, list):
        return [summary(each) for each in message]
    if not isinstance(message, dict):
        return message
    found = {}
    for key, value in message.items():
        if key == "tools" and isinstance(value, list):
            found[key] = [tool["name"] for tool in value]
        elif key == "serverInfo" or key.endswith("/serverInfo"):
            found[key] = {**value, "version": "…"}
        else:
            found[key] = "…" if key in TEXTS and value else summary(value)
    return found


def _install(stage: Stage, directory: Path, *options: str) -> None:
    stage.whisper_tui("install", stage.program.name, "--yes", *options)
    program = directory / "tap" / "whisper-tui"
    tap.write_program(program, LAUNCHER, directory / "record")
    stage.change_settings(re.escape(str(LAUNCHER)) + PROGRAMS_OF_OURS, str(program))
    stage.options = stage.program.untrusted_too


def _variables(program: Program, start: dict[str, Any]) -> dict[str, str]:
    """Return the variables that the client itself has set."""
    given = program.environment("")
    own = (name for name in sorted(start["environment"]) if OWN_VARIABLES.match(name) and name not in given)
    return {name: start["environment"][name] for name in own}


def _processes(starts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the process ids that are named in variables."""
    for start in starts:
        for name, text in start["environment"].items():
            if name.endswith("_PID") and text.isdigit():
                yield text


def record(program: Program) -> dict[str, Any]:
    """Record one client."""
    with tempfile.TemporaryDirectory(prefix="recording-") as above:
        places = [Path(above) / name for name in ("hook", *map(str, range(ATTEMPTS)), "executor")]
        for place in places:
            place.mkdir()
        hook = record_hook(program, places[0])
        servers = (record_server(program, place) for place in places[1:-1])
        server = next((each for each in servers if not _began_twice(each)), None)
        executor = {"executor": record_executor(places[-1])} if program.name == "codex" else {}
    assert server is not None, f"the machine is too slow for {program.name}, which asked its first question twice"
    return {"client": program.name, "version": versions()[program.name], "hook": hook, "server": server, **executor}


def main(names: Sequence[str]) -> int:
    """Record the clients with these names, or all. Returns 1 if one is not installed."""
    RECORDINGS.mkdir(exist_ok=True)
    absent = []
    for program in RECORDED:
        if names and program.name not in names:
            continue
        if program.name in missing():
            absent.append(program.name)
            continue
        path = RECORDINGS / f"{program.name}.json"
        path.write_text(json.dumps(record(program), indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"wrote {path}\n")
    if absent:
        sys.stderr.write(f"Not installed, and so not recorded: {', '.join(absent)}.\n")
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
