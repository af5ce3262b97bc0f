"""The comparison with peers: what its tables say, how a peer is installed or not, and its client of MCP."""

import os
import sys
from pathlib import Path

import pytest

from benchmarks.peers.install import PEERS, NotInstalled, install, program
from benchmarks.peers.mcp_stdio import Server, text_of
from benchmarks.peers.report import Column, Row, table
from benchmarks.peers.way import Failed

NPM_PEER = next(peer for peer in PEERS if peer.source == "npm")
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18"}
    elif message["method"] != "tools/call":
        continue
    elif message["params"]["name"] == "leave":
        break
    else:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        said = message["params"]["arguments"]["say"]
        result = {"content": [{"type": "text", "text": said}], "isError": said.startswith("no")}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def npm_that(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on npm does as the script says."""
    directory.mkdir()
    npm = directory / "npm"
    npm.write_text(f"#!/bin/sh\n{script}")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")


async def served(place: Path) -> Server:
    return await Server.start([sys.executable, "-c", SERVER], os.environ, place)


def test_ratios_refer_to_the_first_row_and_failures_are_described():
    rows = [Row("floor", (2.0, 1000)), Row("a | b", (5.0, None)), Row("peer", (), "hangs\nat once")]
    assert table([Column("ms", 1, ratio=True), Column("MiB/s", 0)], rows).splitlines() == [
        "| way | ms | ratio | MiB/s | remark |",
        "|---|---|---|---|---|",
        "| floor | 2.0 | 1.00 times | 1,000 |  |",
        "| a \\| b | 5.0 | 2.50 times | - |  |",
        "| peer | - | - | - | hangs at once |",
    ]


def test_a_table_in_which_nothing_failed_has_no_remarks():
    assert table([Column("s")], [Row("floor", (1,))], first="who").splitlines()[0] == "| who | s |"


def test_a_peer_is_installed_once_in_its_version(tmp_path, monkeypatch):
    made = NPM_PEER.program
    script = f'mkdir -p "$(dirname {made})"; touch {made}; echo "$@" >> ../asked'
    npm_that(tmp_path / "bin", script, monkeypatch)
    install(NPM_PEER, tmp_path / "place")
    install(NPM_PEER, tmp_path / "place")
    (asked,) = (tmp_path / "place" / "asked").read_text().splitlines()
    assert asked.endswith(f"{NPM_PEER.package}@{NPM_PEER.version}")
    assert Path(program(NPM_PEER.name, tmp_path / "place")).exists()


def test_a_peer_that_cannot_be_had_says_so_and_is_tried_again(tmp_path, monkeypatch, capsys):
    npm_that(tmp_path / "bin", "echo no such thing >&2; echo asked >> ../asked; exit 1", monkeypatch)
    for _ in range(2):
        with pytest.raises(NotInstalled, match=f"npm did not give {NPM_PEER.package} {NPM_PEER.version}"):
            install(NPM_PEER, tmp_path / "place")
    assert (tmp_path / "place" / "asked").read_text() == "asked\nasked\n"
    assert "no such thing" in Path(capsys.readouterr().err.split("; ")[-1].split(" says why")[0]).read_text()


async def test_answers_find_their_questions_whatever_else_a_server_says(tmp_path):
    server = await served(tmp_path)
    try:
        assert text_of(await server.call("echo", {"say": "first"})) == "first"
        with pytest.raises(Failed, match="no such file"):
            await server.call("echo", {"say": "no such file"})
        assert text_of(await server.call("echo", {"say": "third"})) == "third"
    finally:
        await server.close()


async def test_a_server_that_ends_fails_what_it_was_asked(tmp_path):
    server = await served(tmp_path)
    try:
        with pytest.raises(Failed, match="ended without an answer"):
            await server.call("leave", {})
        with pytest.raises(Failed, match="has ended"):
            await server.call("echo", {"say": "anybody?"})
    finally:
        await server.close()
