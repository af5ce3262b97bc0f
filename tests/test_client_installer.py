"""The script that installs the agent clients for their tests: what it says when it cannot, and when it is done."""

import os
from pathlib import Path

import pytest

from tests.clients.install import ROOT, NotInstalled, install, is_complete, versions

PAGES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}
"""The pages about the clients."""

GOOD = """
mkdir -p node_modules/.bin
for pair in {pairs}; do
  printf '#!/bin/sh\\necho %s\\n' "${{pair#*=}}" > "node_modules/.bin/${{pair%%=*}}"
  chmod +x "node_modules/.bin/${{pair%%=*}}"
done
echo called >> ../calls
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


def test_what_is_complete_is_not_installed_again(tmp_path):
    environ = npm_that_installs(tmp_path / "bin")
    assert not is_complete(tmp_path / "place")
    assert install(tmp_path / "place", environ)
    assert is_complete(tmp_path / "place")
    assert not install(tmp_path / "place", environ)
    assert (tmp_path / "place" / "calls").read_text() == "called\ncalled\n"


def test_an_installation_of_other_versions_is_not_complete(tmp_path):
    install(tmp_path / "place", npm_that_installs(tmp_path / "bin"))
    (tmp_path / "place" / "complete").write_text("something else\n")
    assert not is_complete(tmp_path / "place")


def test_without_npm_it_says_what_to_install(tmp_path):
    with pytest.raises(NotInstalled, match=r"npm was not found\. Install Node\.js"):
        install(tmp_path / "place", {"PATH": str(tmp_path)})


def test_what_npm_says_is_told_in_a_sentence_with_the_place_of_the_rest(tmp_path):
    environ = npm_that(tmp_path / "bin", "echo 'npm error code E404' >&2; echo 'npm error no such thing.' >&2; exit 1")
    with pytest.raises(NotInstalled) as caught:
        install(tmp_path / "place", environ)
    log = tmp_path / "place" / "node.log"
    sentence = "The node for the tests could not be installed: no such thing."
    assert str(caught.value) == f"{sentence} All that npm said is in {log}."
    assert "E404" in log.read_text()


def test_a_program_of_another_version_is_an_error_and_the_installation_stays_incomplete(tmp_path):
    environ = npm_that_installs(tmp_path / "bin", codex="0.1.0")
    with pytest.raises(NotInstalled, match=r"codex was installed in .* does not say that it is version .*0\.1\.0"):
        install(tmp_path / "place", environ)
    assert not is_complete(tmp_path / "place")


@pytest.mark.parametrize("program", PAGES)
def test_the_page_about_a_client_names_the_version_that_is_tested(program):
    page = (ROOT / "docs" / "agents" / f"{PAGES[program]}.md").read_text(encoding="utf-8")
    _, measured = page.split("## What was measured")
    assert f" {versions()[program]}, by `make test-clients`" in measured
