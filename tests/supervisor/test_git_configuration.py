"""A repository whose settings could run something is never looked at without a question."""

from tests.rows import each_row
from whisper_tui.effects.git_repository import configuration_is_neutral

ORDINARY = """
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
[remote "origin"]
	url = git@example.org:a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = A "quoted" name
"""


def test_an_ordinary_configuration_runs_nothing() -> None:
    assert configuration_is_neutral(ORDINARY)


@each_row(
    "setting",
    [
        "[core]\n\tfsmonitor = ./x",
        "[core]\n\thooksPath = x",
        "[core]\n\tpager = x",
        "[core]\n\tsshCommand = x",
        "[core]\n\tattributesFile = x",
        "[core]\n\tworktree = /elsewhere",
        "[diff]\n\texternal = x",
        '[diff "x"]\n\ttextconv = x',
        '[filter "x"]\n\tclean = x',
        "[alias]\n\tstatus = !x",
        "[include]\n\tpath = x",
        '[includeIf "gitdir:/"]\n\tpath = x',
        "[gpg]\n\tprogram = x",
        '[remote "origin"]\n\turl = ext::x',
        '[submodule "x"]\n\tupdate = !x',
        "[core] fsmonitor = x",
        "[log]\n\tshowSignature = true",
        "[core]\n\tfilemode = tr\\\nue",
        "[core]\n\tnonsense here",
        "filemode = true",
    ],
)
def test_a_setting_that_could_run_something_or_is_not_understood_is_not_neutral(setting: str) -> None:
    assert not configuration_is_neutral(ORDINARY + setting + "\n")
