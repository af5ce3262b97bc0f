"""Files that wrappers write themselves: a risk of the call, and no allow rule covers one that it does not name."""

from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.commands.wrapper_files import OwnFiles, own_files
from whisper_tui.policy.commands.wrappers import wrapper_of
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.programs.entries import entry_of, program_names
from whisper_tui.supervisor.approvals.judge import judge_alone


@each_row(
    ("text", "written"),
    [
        ("/usr/bin/time -o F ls", ("F",)),
        ("time --output=F -a ls", ("F",)),
        ("strace -fo F ls", ("F",)),
        ("flock -n F ls", ("F",)),
        ("script -q F", ("F",)),
        ("script -qc ls", ("typescript",)),
        ("script F -T G -c ls", ("G", "F")),
        ("nice -n 5 ls", ()),
        ("env X=1 ls", ()),
    ],
)
def test_the_own_files_of_a_wrapper(text: str, written: tuple[str, ...]) -> None:
    assert own_files(tuple(text.split())).written == written


@each_row(
    "text", ["rlwrap -H F ls", "strace -ff -o F ls", "strace -o |x ls", "valgrind --tool=massif ls", "bash -i -c ls"]
)
def test_a_wrapper_of_which_not_all_files_are_known(text: str) -> None:
    assert not own_files(tuple(text.split())).is_complete


def test_a_wrapper_that_writes_nothing_itself_is_known() -> None:
    assert own_files(("timeout", "5", "ls")) == OwnFiles()


def test_the_options_that_name_own_files_take_a_value() -> None:
    for name in program_names():
        entry, wrapper = entry_of(name), wrapper_of(name)
        for option in (entry.own_files or ()) if entry and wrapper else ():
            known = entry.options.get(option)
            assert (known is not None and known.value == "needed") or (name, option) in PASSED_OVER
        assert entry is not None and (entry.own_files is not None or not (entry.own_operand or entry.more_files))


PASSED_OVER = {("valgrind", "--xml-file")}
"""Options that the wrapper has, and that make it unknown what it runs."""


def test_a_rule_covers_the_own_file_of_a_wrapper_only_if_it_names_it() -> None:
    def kind(text: str, *prefix: str) -> str:
        rule = Rule(name="r", prefix=prefix, sandbox=False)
        spec = CommandSpec(command=Shell(text=text), cwd="/w")
        return judge_alone(spec, Rules(allow=(rule,)), {"PATH": "/usr/bin:/bin"}, root="/w", now=0.0)[0].kind

    verdict, _ = judge_alone(
        CommandSpec(command=Shell(text="strace -o out ls"), cwd="/w"), Rules(), {"PATH": "/bin"}, root="/w", now=0.0
    )
    assert "`strace` itself writes out" in [risk.sentence for risk in verdict.risks]
    assert kind("strace -o out ls", "strace") == "ask"
