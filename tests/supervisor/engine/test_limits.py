"""What a run may use: enforced before its first instruction, and told when it was too much."""

import signal
import sys

import pytest

from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited, FailedToStart, Signalled
from whisper_tui.model.run import Limits

MIB = 1024 * 1024
SPIN = "while True: pass"


def python(text: str) -> Argv:
    return Argv(program=sys.executable, args=("-I", "-S", "-c", text))


@pytest.mark.slow
async def test_a_run_beyond_its_processor_time_is_ended_and_says_so(engine: Engine) -> None:
    key = await engine.run(python(SPIN), limits=Limits(cpu_s=1))
    ending = await engine.ended(key)
    assert isinstance(ending, Signalled)
    assert (ending.number, ending.by_us, ending.limit) == (signal.SIGXCPU, False, "cpu")


async def test_a_run_cannot_take_its_limit_off(engine: Engine) -> None:
    text = (
        "import resource\n"
        "try: resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))\n"
        "except (ValueError, PermissionError): print('refused')\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU))"
    )
    key = await engine.run(Argv(program=sys.executable, args=("-I", "-c", text)), limits=Limits(cpu_s=3))
    if b"refused" not in engine.out(key):
        pytest.skip("this user may raise any limit")
    assert b"(3, 8)" in engine.out(key)


async def test_a_run_gets_no_more_memory_than_its_limit(engine: Engine) -> None:
    within, beyond = (f"print(len(bytearray({mib} << 20)) >> 20)" for mib in (16, 512))
    small = await engine.run(python(within), limits=Limits(memory_bytes=128 * MIB))
    large = await engine.run(python(beyond), limits=Limits(memory_bytes=128 * MIB))
    assert engine.out(small) == b"16\n" and await engine.ended(small) == Exited(code=0)
    assert b"MemoryError" in engine.err(large) and await engine.ended(large) == Exited(code=1)


async def test_a_run_with_too_many_processes_is_ended_whole_and_says_so(engine: Engine) -> None:
    key = await engine.run("for i in 1 2 3 4 5 6 7 8; do setsid sleep 1000 & done; wait", limits=Limits(processes=4))
    ending = await engine.ended(key)
    assert isinstance(ending, Signalled)
    assert (ending.number, ending.by_us, ending.limit) == (signal.SIGKILL, True, "processes")


async def test_a_run_within_its_limits_ends_as_if_there_were_none(engine: Engine) -> None:
    limits = Limits(cpu_s=60, memory_bytes=1024 * MIB, processes=50)
    key = await engine.run("read line < /dev/null; echo out; echo err >&2; sleep 0.3; exit 7", limits=limits)
    assert (engine.out(key), engine.err(key), await engine.ended(key)) == (b"out\n", b"err\n", Exited(code=7))


async def test_a_limited_run_has_its_own_session_and_plain_signals(engine: Engine) -> None:
    text = (
        "import os, signal; print(os.getsid(0) == os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, ()),"
        " [n for n in (1, 2, 3, 13, 15, 17, 25) if signal.getsignal(n) is signal.SIG_IGN])"
    )
    plain = await engine.run(python(text))
    limited = await engine.run(python(text), limits=Limits(cpu_s=60))
    assert engine.out(limited) == engine.out(plain)
    assert engine.out(limited).startswith(b"True set()")


async def test_a_limited_run_has_a_terminal_of_its_own(engine: Engine) -> None:
    key = await engine.run("tty; echo here > /dev/tty", tty=True, limits=Limits(cpu_s=60))
    assert engine.out(key).startswith(b"/dev/") and engine.out(key).endswith(b"here\r\n")


async def test_no_descriptor_reaches_a_limited_run_that_is_not_its_own(engine: Engine) -> None:
    text = "import os; print([n for n in os.listdir('/dev/fd') if int(n) > 2 and os.path.exists(f'/dev/fd/{n}')])"
    key = await engine.run(Argv(program=sys.executable, args=("-I", "-c", text)), limits=Limits(cpu_s=60))
    assert engine.out(key) == b"[]\n"


async def test_a_limited_run_reports_a_failed_start_as_usual(engine: Engine) -> None:
    script = engine.workspace / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    command = Argv(program=str(script), args=())
    plain = await engine.run(command, program=str(script))
    limited = await engine.run(command, program=str(script), limits=Limits(cpu_s=60))
    assert isinstance(await engine.ended(plain), FailedToStart)
    assert await engine.ended(limited) == await engine.ended(plain)
