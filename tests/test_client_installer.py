"""The script that installs the agent clients for their tests: what it says when it cannot, and when it is done."""

import os
from pathlib import Path

import pytest

from tests.clients.install import CLIENTS, ROOT, NotInstalled, install, is_complete, missing, versions
from tests.rows import each_row

PAGES = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "kilo": "kilo",
    "kimi": "kimi",
    "opencode": "opencode",
    "copilot": "copilot",
    "qwen": "qwen-code",
}
"""The pages about the clients."""

GOOD = """
part="$(basename "$PWD")"
for pair in {pairs}; do
  if [ "${{pair%%=*}}" = "$part" ]; then
    mkdir -p node_modules/.bin
    printf '#!/bin/sh\necho %s\n' "${{pair#*=}}" > "node_modules/.bin/$part"
    chmod +x "node_modules/.bin/$part"
  fi
done
echo "$part" >> ../calls
"""


def npm_that(directory: Path, script: str) -> dict[str, str]:
    """An environment in which npm does as the script says."""
    directory.mkdir()
    program = directory / "npm"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}", "HOME": str(directory)}


def npm_that_installs(directory: Path, **other: str) -> dict[str, str]:
    """An environment in which npm makes programs that say the right version, or another one."""
    pairs = " ".join(f"{program}={version}" for program, version in (versions() | other).items())
    return npm_that(directory, GOOD.format(pairs=pairs))


def test_a_complete_client_is_not_installed_again(tmp_path):
    place, environ = tmp_path / "place", npm_that_installs(tmp_path / "bin")
    assert missing(place) == list(CLIENTS)
    assert install(place, environ) == {}
    assert missing(place) == []
    assert install(place, environ) == {}
    assert sorted((place / "calls").read_text().split()) == sorted(("node", *CLIENTS))


def test_an_installation_of_another_version_is_replaced_and_the_others_are_left_alone(tmp_path):
    place, environ = tmp_path / "place", npm_that_installs(tmp_path / "bin")
    install(place, environ)
    (place / "codex.complete").write_text("something else\n")
    assert missing(place) == ["codex"]
    (place / "calls").unlink()
    install(place, environ)
    assert (place / "calls").read_text() == "codex\n"
    assert is_complete("codex", place)


def test_without_npm_it_says_what_to_install(tmp_path):
    with pytest.raises(NotInstalled, match=r"npm was not found\. Install Node\.js"):
        install(tmp_path / "place", {"PATH": str(tmp_path)})


def test_without_the_node_that_all_run_on_nothing_is_installed(tmp_path):
    environ = npm_that(tmp_path / "bin", "echo 'npm error code E404' >&2; echo 'npm error no such thing.' >&2; exit 1")
    with pytest.raises(NotInstalled) as caught:
        install(tmp_path / "place", environ)
    log = tmp_path / "place" / "node.log"
    assert str(caught.value) == f"node could not be installed: no such thing. All that npm said is in {log}."
    assert "E404" in log.read_text()


def test_a_client_that_cannot_be_had_is_named_and_keeps_no_other_away(tmp_path):
    pairs = " ".join(f"{program}={version}" for program, version in versions().items())
    refuses = 'case "$PWD" in */gemini) echo "npm error no such thing." >&2; exit 1;; esac'
    environ = npm_that(tmp_path / "bin", refuses + GOOD.format(pairs=pairs))
    problems = install(tmp_path / "place", environ)
    log = tmp_path / "place" / "gemini.log"
    assert {client: str(problem) for client, problem in problems.items()} == {
        "gemini": f"gemini could not be installed: no such thing. All that npm said is in {log}."
    }
    assert missing(tmp_path / "place") == ["gemini"]


@pytest.mark.slow
def test_a_client_that_takes_too_long_is_named_and_keeps_no_other_away(tmp_path):
    pairs = " ".join(f"{program}={version}" for program, version in versions().items())
    hangs = 'case "$PWD" in */opencode) exec sleep 600;; esac'
    environ = npm_that(tmp_path / "bin", hangs + GOOD.format(pairs=pairs))
    problems = install(tmp_path / "place", environ, within_s=5.0)
    assert "npm was not done in time" in str(problems["opencode"])
    assert missing(tmp_path / "place") == ["opencode"]


def test_a_program_of_another_version_is_an_error_and_the_client_stays_incomplete(tmp_path):
    environ = npm_that_installs(tmp_path / "bin", codex="0.1.0")
    problems = install(tmp_path / "place", environ)
    assert "does not say that it is version" in str(problems["codex"])
    assert "0.1.0" in str(problems["codex"])
    assert not is_complete("codex", tmp_path / "place")


@each_row("program", PAGES)
def test_the_page_about_a_client_names_the_version_that_is_tested(program):
    page = (ROOT / "docs" / "agents" / f"{PAGES[program]}.md").read_text(encoding="utf-8")
    _, measured = page.split("## What was measured")
    assert f" {versions()[program]}, by `make test-clients`" in measured


@each_row("agent", ["claude-agent-acp", "codex-acp", "kimi", "opencode", "copilot", "gemini", "qwen"])
def test_the_page_about_editors_names_the_version_of_each_agent_that_is_tested(agent):
    _, measured = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8").split("## What was measured")
    assert versions()[agent] in measured
