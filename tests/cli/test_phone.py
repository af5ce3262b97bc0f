"""`whisper-tui phone`: its page, and phones that are paired, listed and revoked at a terminal."""

import asyncio
import http.client
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.cli.terminal import Terminal
from tests.outside import outside_only
from tests.supervisor.phones.authenticator import Authenticator
from whisper_tui.model.phone import PairedPhone
from whisper_tui.wire.phone_client import PhoneClient

pytestmark = outside_only
ORIGIN = "https://box.example.ts.net"
CODE = re.compile(r"The code is (\S{5}-\S{5})\.")


@pytest.mark.parametrize("way", ["tailscale", "ssh", "url"])
def test_each_way_begins_with_what_is_needed_and_has_its_lines(instance: Instance, way: str) -> None:
    said = instance.run("phone", "--via", way, "--port", "9000").stdout
    assert said.startswith("A phone needs a fixed DNS name with https for this page")
    assert "127.0.0.1:9000" in said and "whisper-tui phone --port 9000 --origin " in said


def test_an_address_that_is_not_known_is_asked_for(instance: Instance) -> None:
    said = instance.run("phone")
    assert said.returncode == 2 and "--via tailscale" in said.stderr
    said = instance.run("phone", "--origin", "https://10.0.0.1")
    assert said.returncode == 2 and "is an IP address, to which no passkey can belong" in said.stderr


def test_nothing_is_paired_without_a_terminal(instance: Instance) -> None:
    said = instance.run("phone", "pair", "--origin", ORIGIN)
    assert said.returncode == 1 and "there is no terminal to ask on" in said.stderr
    assert instance.run("phone", "list").stdout == "No phone is paired: whisper-tui phone pair\n"
    said = instance.run("phone", "revoke")
    assert said.returncode == 2 and "evoke needs the name of a phone" in said.stderr
    said = instance.run("phone", "revoke", "pixel")
    assert said.returncode == 1 and "no phone 'pixel'" in said.stderr


async def send_key(instance: Instance, code: str) -> PairedPhone:
    client = await PhoneClient.connect(instance.home)
    options = (await client.phone_pair_begin(code, "pixel")).options
    paired = await client.phone_pair(code, "pixel", Authenticator().attestation(options))
    await client.close()
    return paired


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_phone_is_paired_at_a_terminal(instance: Instance, answer: str) -> None:
    words = [*PROGRAM, "phone", "pair", "--origin", ORIGIN, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        found = instance.until(lambda: CODE.search(terminal.text.decode("utf-8", "replace")))
        assert f"{ORIGIN}/pair#{found[1]}".encode() in terminal.text
        # A camera wants it dark on light: its light parts are white characters on black, in light terminals, too.
        drawn = re.findall(rb"\x1b\[38;5;231;48;5;16m([^\x1b]+)\x1b\[0m\r\n", terminal.text)
        assert len(drawn) > 15 and {len(line.decode()) for line in drawn} == {len(drawn[0].decode())}
        paired = asyncio.run(send_key(instance, found[1]))
        instance.until(lambda: b"Add this phone?" in terminal.text)
        assert " ".join(paired.device.words).encode() in terminal.text
        os.write(terminal.master, f"{answer}\n".encode())
        assert terminal.process.wait(60) == (0 if answer == "y" else 1)
    devices = instance.rows("phone", "list")
    assert [each["name"] for each in devices] == (["pixel"] if answer == "y" else [])
    if answer == "y":
        listed = instance.run("phone", "list").stdout
        assert "pixel  paired" in listed and "may approve from" in listed and "key bound to the phone" in listed
        assert instance.run("phone", "revoke", "pixel").stdout == "Revoked pixel: it can do nothing any more\n"
        assert "REVOKED" in instance.run("phone", "list").stdout


def test_the_first_phone_is_paired_while_the_page_is_served(instance: Instance) -> None:
    words = [*PROGRAM, "phone", "--port", "0", "--origin", ORIGIN, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        found = instance.until(lambda: CODE.search(terminal.text.decode("utf-8", "replace")))
        asyncio.run(send_key(instance, found[1]))
        instance.until(lambda: b"Add this phone?" in terminal.text)
        os.write(terminal.master, b"y\n")
        instance.until(lambda: b"pixel is paired. It may deny now" in terminal.text)
        assert terminal.process.poll() is None
        os.write(terminal.master, b"\x03")
        assert terminal.process.wait(60) == 0
    assert [each["name"] for each in instance.rows("phone", "list")] == ["pixel"]


@pytest.mark.slow
def test_a_phone_is_woken_by_pushes_as_soon_as_it_wants_them(instance: Instance) -> None:
    words = [*PROGRAM, "phone", "pair", "--origin", ORIGIN, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        found = instance.until(lambda: CODE.search(terminal.text.decode("utf-8", "replace")))
        paired = asyncio.run(send_key(instance, found[1]))
        instance.until(lambda: b"Add this phone?" in terminal.text)
        os.write(terminal.master, b"y\n")
        assert terminal.process.wait(60) == 0

    async def want_pushes() -> None:
        client = await PhoneClient.connect(instance.home)
        # A name that nobody has: what is tried shows in the problem with it.
        await client.phone_push_to(paired.token, "https://push.invalid/send/abc")
        await client.close()

    asyncio.run(want_pushes())
    assert "woken by pushes" in instance.run("phone", "list").stdout
    instance.call("execute_command", command="echo", args=["hello"])
    said = instance.until(lambda: instance.rows("status")["notify_problem"])
    assert said.startswith("Pushes to phones do not arrive: push.invalid ")


@pytest.mark.slow
def test_a_phone_is_confirmed_again_after_a_kill(instance: Instance) -> None:
    words = [*PROGRAM, "phone", "pair", "--origin", ORIGIN, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        found = instance.until(lambda: CODE.search(terminal.text.decode("utf-8", "replace")))
        asyncio.run(send_key(instance, found[1]))
        instance.until(lambda: b"Add this phone?" in terminal.text)
        os.write(terminal.master, b"y\n")
        assert terminal.process.wait(60) == 0
    instance.kill_supervisor(signal.SIGKILL)
    assert "only denies: the supervisor was killed" in instance.run("phone", "list").stdout
    assert instance.run("phone", "confirm", "pixel").returncode == 1
    words = [*PROGRAM, "phone", "confirm", "pixel", "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        instance.until(lambda: b"shall it approve again?" in terminal.text)
        os.write(terminal.master, b"y\n")
        assert terminal.process.wait(60) == 0
    assert "only denies" not in instance.run("phone", "list").stdout


def test_the_page_is_served_until_it_is_interrupted(instance: Instance) -> None:
    origin = "http://desk.localhost:4711"
    page = instance.start("phone", "--port", "0", "--origin", origin, stdin=subprocess.DEVNULL)
    assert page.stdout is not None
    line = page.stdout.readline()
    port = int(re.findall(r":(\d+),", line)[0])
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    asked.request("GET", "/", headers={"Host": "desk.localhost:4711"})
    answer = asked.getresponse()
    assert answer.status == 200 and "default-src 'none'" in (answer.headers["Content-Security-Policy"] or "")
    asked.close()
    page.send_signal(2)
    out, err = page.communicate(timeout=60)
    assert (page.returncode, out) == (0, "") and "no phone is paired yet" in err.lower()


def test_without_its_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['webauthn'] = None; from whisper_tui.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", program, "phone", "--origin", ORIGIN, "--home", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "[phone]" in done.stderr and "whisper-tui[phone]" not in done.stderr
