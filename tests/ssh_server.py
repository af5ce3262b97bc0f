"""An ssh server of the tests' own: its own keys, a free port on the loopback, or an address of a network namespace.

A namespace is another machine as far as ssh is concerned: its kernel knows one end of the connection alone.
"""

import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
IP = shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")

needs_sshd = pytest.mark.skipif(SSHD is None or not shutil.which("ssh"), reason="there is no OpenSSH server here")


class SshServer:
    """A server that lets in whoever has its key. `config` is the client's configuration, with the host `name`."""

    def __init__(
        self, place: Path, name: str, address: str, port: int, inside: tuple[str, ...], variables: str = ""
    ) -> None:
        self.config = place / "ssh_config"
        self._place, self._port = place, port
        self._inside = inside
        place.mkdir(parents=True)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / key], check=True)
        (place / "sshd_config").write_text(
            f"Port {port}\nListenAddress {address}\nHostKey {place}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {place}/user.pub\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
            + (f"SetEnv {variables}\n" if variables else "")
        )
        self.config.write_text(
            f"Host {name}\n HostName {address}\n Port {port}\n IdentityFile {place}/user\n IdentitiesOnly yes\n"
            f" StrictHostKeyChecking accept-new\n UserKnownHostsFile {place}/known\n LogLevel ERROR\n"
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.name, self._address = name, address
        self.start()

    def start(self) -> None:
        """Listen, and return once a connection is answered."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        command = [
            *self._inside,
            str(SSHD),
            "-D",
            "-f",
            str(self._place / "sshd_config"),
            "-E",
            str(self._place / "log"),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as trial:
                trial.settimeout(1)
                if trial.connect_ex((self._address, self._port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self._place / "log").read_text())

    def command(self, *words: str) -> list[str]:
        """The command line that runs a program at the server."""
        return ["ssh", "-F", str(self.config), self.name, shlex.join(words)]

    def stop(self) -> None:
        """End the server. Sessions go on without it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


@contextmanager
def loopback_server(place: Path, name: str = "here") -> Iterator[SshServer]:
    """A server of this machine itself."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = SshServer(place, name, "127.0.0.1", port, ())
    try:
        subprocess.run(server.command("true"), capture_output=True, stdin=subprocess.DEVNULL, check=False)
        # The accounts of services are locked, and OpenSSH lets nobody in as one of them.
        refusal = re.search(r"User \S+ not allowed because .*", (place / "log").read_text())
        if refusal is not None:
            pytest.skip(refusal[0])
        yield server
    finally:
        server.stop()


@contextmanager
def other_machine(place: Path, name: str = "there", variables: str = "") -> Iterator[tuple[SshServer, tuple[str, ...]]]:
    """A server in a network namespace, and the words before a command that run it there. Skips without the rights.

    `variables`: what it sets for its sessions, as `NAME=VALUE` words.
    """
    if os.geteuid() != 0 or IP is None:
        pytest.skip("only root makes network namespaces")
    tag = secrets.token_hex(4)
    space, near, far = f"wt{tag}", f"n{tag}", f"f{tag}"
    net = f"10.{int(tag[:2], 16)}.{int(tag[2:4], 16)}."
    inside = (IP, "netns", "exec", space)
    steps = (
        ("netns", "add", space),
        ("link", "add", near, "type", "veth", "peer", "name", far, "netns", space),
        ("addr", "add", f"{net}1/30", "dev", near),
        ("link", "set", near, "up"),
        ("-n", space, "addr", "add", f"{net}2/30", "dev", far),
        ("-n", space, "link", "set", far, "up"),
        ("-n", space, "link", "set", "lo", "up"),
    )
    try:
        for step in steps:
            if subprocess.run([IP, *step], capture_output=True, check=False).returncode:
                pytest.skip("this system gives no network namespaces")
        server = SshServer(place, name, f"{net}2", 22, inside, variables)
        try:
            yield server, inside
        finally:
            server.stop()
    finally:
        subprocess.run([IP, "netns", "del", space], capture_output=True, check=False)
        subprocess.run([IP, "link", "del", near], capture_output=True, check=False)
