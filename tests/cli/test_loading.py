"""What is loaded beside other work."""

import asyncio
import threading

import pytest

from whisper_tui.cli.compose import loaded


def test_a_stop_does_not_wait_for_what_is_still_being_loaded() -> None:
    never = threading.Event()

    async def begin() -> None:
        asyncio.create_task(loaded(never.wait)).add_done_callback(lambda _: None)
        await asyncio.sleep(0)

    stopping = threading.Thread(target=asyncio.run, args=(begin(),), daemon=True)
    stopping.start()
    stopping.join(30)
    stopped = not stopping.is_alive()
    never.set()
    assert stopped


async def test_the_result_or_the_error_of_loading_reaches_the_caller() -> None:
    assert await loaded(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        await loaded(lambda: 1 // 0)
