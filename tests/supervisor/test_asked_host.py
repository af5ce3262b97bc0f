"""Whatever inspects a command asks the machine on which it would run."""

import ast
import os
import threading
from pathlib import Path

import pytest

import whisper_tui
from tests.syntax import syntax_tree
from whisper_tui.system import host_files

PACKAGE = Path(whisper_tui.__file__).parent

ASKS_THE_DISK = {
    "os": {*dir(os)} - {"path", "fsencode", "fsdecode", "fspath", "pathsep", "defpath", "sep", "replace", "error"},
    "os.path": {"exists", "lexists", "realpath", "expanduser", "abspath", "samefile", "getsize"}
    | {name for name in dir(os.path) if name.startswith("is") and name != "isabs"},
    "socket": {"gethostname", "getfqdn"},
    "host_files": {"realpath_here"},
}
"""Functions that look at this machine, whatever machine a command is for."""

LOOKING_MODULES = {"pathlib", "Path", "shutil", "glob", "pwd", "subprocess"}

ABOUT_THIS_MACHINE = {
    "supervisor/approvals/command_files.py": {"ApprovedScripts"},  # its own store beside the journal
    # the key of the user and OpenSSH's program, on the desk's machine; no command is inspected
    "supervisor/approvals/ssh_signatures.py": {"fingerprint_of", "verified", "_run"},
    "effects/git_reader.py": {"GitReader", "_uncaged"},  # runs git, which it refuses for a place
}


def inspecting_files() -> list[Path]:
    return [*(PACKAGE / "effects").glob("*.py"), *(PACKAGE / "supervisor/approvals").glob("*.py")]


def looks_of(path: Path) -> list[str]:
    """The uses of functions that look at this machine, with their lines."""
    exempt = next((names for name, names in ABOUT_THIS_MACHINE.items() if path.match(name)), set())
    found: list[str] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in exempt:
            return
        if isinstance(node, ast.Attribute) and node.attr in ASKS_THE_DISK.get(ast.unparse(node.value), ()):
            found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
        if isinstance(node, ast.Attribute | ast.Call):
            called = ast.unparse(node.func if isinstance(node, ast.Call) else node.value)
            if called.partition(".")[0] in LOOKING_MODULES or called == "open":
                found.append(f"{path.name}:{node.lineno} {called}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(syntax_tree(path.read_text()))
    return found


def test_what_inspects_a_command_never_looks_at_this_machine_by_itself():
    assert [look for path in inspecting_files() for look in looks_of(path)] == []


@pytest.mark.parametrize(
    "text", ["import os\nos.path.isdir(x)", "open(x)", "import os\nf = os.lstat", "Path(x).exists()"]
)
def test_a_look_at_this_machine_is_found(tmp_path, text):
    (tmp_path / "some.py").write_text(text)
    assert looks_of(tmp_path / "some.py")


class Elsewhere(host_files.LocalFiles):
    """A machine with one directory."""

    place = "gpu1"

    def stat(self, path: str) -> os.stat_result:
        if path != "/only/there":
            raise FileNotFoundError(path)
        return os.stat("/")


def test_another_machine_is_asked_within_its_block_and_in_this_thread_alone():
    seen: list[bool] = []
    with host_files.asking(Elsewhere()):
        assert host_files.place() == "gpu1"
        assert host_files.is_directory("/only/there")
        assert not host_files.exists("/")
        thread = threading.Thread(target=lambda: seen.append(host_files.exists("/")))
        thread.start()
        thread.join()
    assert seen == [True]
    assert host_files.place() == ""
    assert not host_files.is_directory("/only/there")


def test_a_name_that_no_system_takes_names_nothing():
    for question in (host_files.exists, host_files.lexists, host_files.is_directory, host_files.is_file):
        assert not question("a\0b")
