"""What the sandbox costs: milliseconds at each start, and ordinary commands that fail in it; prints Markdown.

The baseline of the first is the same start without a sandbox. For the second, the commands of `everyday.txt`, a line
each, or of the file that is named, are judged in a clone of this repository; those that the built-in list allows run
twice, free and in the sandbox.
"""

import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from whisper_tui.effects.git_repository import NEUTRAL
from whisper_tui.model.call import CommandSpec, Shell, ToolCall
from whisper_tui.model.decision import Approve
from whisper_tui.model.state import CallRecord, Unjudged
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.keeper.sandbox import Profile, Sandboxes
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications
from whisper_tui.supervisor.runs.sandbox_profile import minimal_environment, sandbox_profile_of

LONGEST_S = 5.0
STARTS = 300
Outcome = tuple[int, bytes]


def free(text: str, cwd: str, environment: dict[str, str]) -> Outcome:
    """Its exit code and output without a sandbox."""
    try:
        done = subprocess.run(
            ["bash", "-c", text], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, b""
    return done.returncode, done.stdout


def confined(text: str, cwd: str, environment: dict[str, str], given: Profile, boxes: Sandboxes) -> Outcome:
    """The same in the sandbox that the keeper would set up."""
    output = Path(given.write[0], "output")
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(_standard(output))]
    os.chdir(cwd)
    started = boxes.start(
        given, lambda: os.posix_spawn("/bin/bash", ["bash", "-c", text], environment, file_actions=actions, setsid=True)
    )
    for _, fd, _ in actions:
        os.close(fd)
    code = _attend(started.pid, SeccompNotifications(started.listener, (*given.write, "/dev/null", "/dev/tty")))
    return code, output.read_bytes()


def _standard(output: Path) -> tuple[int, int, int]:
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.open(os.devnull, os.O_RDONLY), written, os.dup(written)


def _attend(pid: int, denials: SeccompNotifications) -> int:
    """Answer the sandbox until the command has ended, which is its exit code."""
    deadline, poll = time.monotonic() + LONGEST_S, select.poll()
    poll.register(denials.listener, select.POLLIN)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            denials.close()
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            denials.close()
            return 124
        for _, event in poll.poll(20):
            if event & select.POLLIN:
                denials.answer()


def cost(boxes: Sandboxes) -> tuple[float, float]:
    """Milliseconds from the order to the end of `true`, without and with a sandbox: medians of interleaved starts."""
    free_ms, confined_ms = [], []
    given = Profile((str(Path.cwd()),), (), ("/nowhere",), network=False, processes=False)

    def spawn() -> int:
        return os.posix_spawn("/bin/true", ["true"], {}, setsid=True)

    for _ in range(STARTS):
        began = time.perf_counter()
        os.waitpid(spawn(), 0)
        free_ms.append(time.perf_counter() - began)
        boxes.prepare()  # As a keeper does while it waits.
        began = time.perf_counter()
        started = boxes.start(given, spawn)
        os.waitpid(started.pid, 0)
        confined_ms.append(time.perf_counter() - began)
        os.close(started.listener)
    return 1000 * statistics.median(free_ms), 1000 * statistics.median(confined_ms)


def everyday(listed: Path, boxes: Sandboxes) -> tuple[int, int, list[str]]:
    """How many commands there are, how many run unasked, and those of them that fail in the sandbox alone."""
    commands = [line for line in listed.read_text().splitlines() if line]
    allowed, broken = 0, []
    with tempfile.TemporaryDirectory() as top:
        cwd = f"{top}/clone"
        subprocess.run(["git", "clone", "-q", Path(__file__).parent.parent, cwd], check=True)
        for text in commands:
            spec = CommandSpec(command=Shell(text=text), cwd=cwd)
            verdict, resolved = judge_alone(spec, Rules(read_only=True), os.environ, root=cwd, now=time.time())
            if verdict.kind != "allow":
                continue
            allowed += 1
            call = ToolCall(id="1", session_id="s1", tool="t", arguments={}, spec=spec, submitted_at=0.0)
            decision = Approve(sandbox=verdict.sandbox)
            record = CallRecord(call=call, state=Unjudged(), resolved=resolved, decision=decision)
            broken += _fails(record, cwd, boxes)
    return len(commands), allowed, broken


def _fails(record: CallRecord, cwd: str, boxes: Sandboxes) -> list[str]:
    paths = sandbox_profile_of(record, cwd, ())
    text = record.spec.command.words()[-1]
    if paths is None:
        return []
    with tempfile.TemporaryDirectory() as private:
        environment = minimal_environment(os.environ, record.sandbox) | NEUTRAL | {"TMPDIR": private}
        given = Profile(paths.read, paths.execute, (private,), network=False, processes=paths.processes)
        outside, inside = free(text, cwd, environment), confined(text, cwd, environment, given, boxes)
    if outside[0] == inside[0]:
        return []
    said = inside[1].decode(errors="replace").strip().splitlines()
    return [f"`{text}`: {said[-1] if said else f'exit code {inside[0]}'}"]


def main() -> int:
    """Print both tables. Returns 1 where there is no sandbox to measure."""
    boxes = Sandboxes()
    if boxes.support.problem:
        print(f"There is no sandbox here: {boxes.support.problem}", file=sys.stderr)
        return 1
    free_ms, confined_ms = cost(boxes)
    print("### The sandbox\n\n| a start of `true` | ms | ratio |\n|---|---|---|")
    print(f"| without | {free_ms:.2f} | 1 |")
    print(f"| sandboxed | {confined_ms:.2f} | {confined_ms / free_ms:.2f} |\n")
    listed = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("everyday.txt")
    commands, allowed, broken = everyday(listed.absolute(), boxes)
    print(f"Of {commands} ordinary commands {allowed} run unasked; {len(broken)} of these fail in the sandbox alone:\n")
    print("\n".join(f"* {row}" for row in broken))
    return 0


if __name__ == "__main__":
    sys.exit(main())
