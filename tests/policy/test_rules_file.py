"""Rules in a file are parsed strictly, checked against their examples, and survive a round trip."""

import tomllib

import pytest

from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules, stricter
from whisper_tui.policy.rules.rules_toml import read_rules, rules_text


def read(text: str) -> Rules:
    return read_rules(tomllib.loads(text), "rules.toml", table="")


def say(rules: Rules, text: str, cwd: str = "/home/me/project", **question: object) -> str:
    made = a_question(CommandSpec(command=Shell(text=text), cwd=cwd), session_root="/home/me")
    verdict = evaluate(made.__class__(**{**vars(made), **question}), rules, ())
    return verdict.kind


def test_a_prefix_allows_what_begins_with_its_words_and_nothing_dangerous_behind_them() -> None:
    rules = read('[[allow]]\nname = "x"\nprefix = ["git", "push"]\n')
    assert say(rules, "git push origin main") == "allow"
    assert say(rules, "git push --force") == "ask"
    assert say(rules, "git pull") == "ask"
    assert say(rules, "git push; rm x") == "ask"


def test_options_that_are_not_listed_are_asked() -> None:
    rules = read('[[allow]]\nname = "x"\nprefix = ["npm", "run"]\noptions = ["--silent", "--depth="]\n')
    assert say(rules, "npm run build --silent") == "allow"
    assert say(rules, "npm run build --depth=3") == "allow"
    assert say(rules, "npm run build --script-shell=x") == "ask"


def test_deny_beats_ask_and_ask_beats_allow() -> None:
    rules = read(
        '[[allow]]\nname = "a"\nprefix = ["git"]\n'
        '[[ask]]\nname = "b"\nprefix = ["git", "push"]\n'
        '[[deny]]\nname = "c"\nprefix = ["git", "push", "--force"]\n'
    )
    assert [say(rules, text) for text in ("git fetch", "git push", "git push origin --force")] == [
        "allow",
        "ask",
        "refuse",
    ]


def test_a_rule_that_asks_may_say_whether_its_commands_are_previewed() -> None:
    rules = read(
        '[[ask]]\nname = "b"\nprefix = ["npm"]\npreview = "always"\n'
        '[[ask]]\nname = "c"\nprogram = "rm"\npreview = "never"\n'
    )
    assert rules.broken is None

    def previews(text: str) -> str | None:
        question = a_question(CommandSpec(command=Shell(text=text), cwd="/home/me/project"), session_root="/home/me")
        verdict = evaluate(question, rules, ())
        assert verdict.kind == "ask"
        return verdict.preview

    assert [previews(text) for text in ("npm test", "rm x", "make")] == ["always", "never", None]


EFFECTS = """
[[ask]]
name = "make"
prefix = ["make"]
allow_if_preview = { writes_within = ["build/**"], deletes = 2 }
[[ask]]
name = "sed"
program = "sed"
allow_if_preview = { writes_within = ["src/**"] }
"""
"""Two rules on effects."""


def conditions(rules: Rules, text: str, **question: object) -> list[tuple[str, ...]]:
    """What the rules on effects permit to write, of a command that is asked about."""
    made = a_question(CommandSpec(command=Shell(text=text), cwd="/home/me/project"), session_root="/home/me")
    verdict = evaluate(made.__class__(**{**vars(made), **question}), rules, ())
    assert verdict.kind == "ask" and (verdict.preview == "always") == bool(verdict.allow_if_preview)
    return [condition.writes_within for condition in verdict.allow_if_preview]


def test_a_rule_on_effects_permits_them_where_it_names_every_command() -> None:
    rules = read(EFFECTS)
    assert rules.broken is None
    build, src = ("build/**",), ("src/**",)
    assert conditions(rules, "make all -j4") == [build]
    assert conditions(rules, "make && sed -i s/a/b/ src/x") == [build, src]
    assert conditions(rules, "make && cp a b") == []
    assert conditions(rules, "cp a b") == []
    assert conditions(rules, "FOO=1 make") == []
    assert conditions(rules, "find . -exec sed -i s/a/b/ {} +") == []
    assert conditions(rules, "make $TARGET") == []


def test_a_rule_on_effects_for_anything_permits_also_what_cannot_be_read() -> None:
    rules = read('[[ask]]\nname = "x"\nanything = true\nallow_if_preview = { writes_within = ["out/**"] }\n')
    assert conditions(rules, "for f in *; do gzip -k $f; done; python3 -c 'x'") == [("out/**",)]


def test_effects_permit_nothing_where_another_rule_asks_or_the_agent_runs_the_command_itself() -> None:
    rules = read(EFFECTS + '[[ask]]\nname = "j"\nprefix = ["make", "install"]\n')
    assert conditions(rules, "make") == [("build/**",)]
    assert conditions(rules, "make install") == []
    assert conditions(rules, "make", by_agent=True) == []


def test_effects_permit_nothing_that_is_always_asked_about() -> None:
    rules = read('[[ask]]\nname = "x"\nanything = true\nallow_if_preview = { writes_within = ["**"] }\n')
    assert conditions(rules, "date > now") == [("**",)]
    assert conditions(rules, "echo $(date) > now") == []


def test_rules_of_others_permit_no_effects() -> None:
    rules = stricter(Rules(), read(EFFECTS))
    assert [rule.allow_if_preview for rule in rules.ask] == [None, None]


@each_row(
    ("rule", "said"),
    [
        ('[[allow]]\nname = "b"\nprefix = ["make"]\nallow_if_preview = {}\n', "only a rule that asks"),
        ('[[ask]]\nname = "b"\nprefix = ["make"]\nallow_if_preview = { write_within = ["x"] }\n', "write_within"),
        ('[[ask]]\nname = "b"\nprefix = ["make"]\nallow_if_preview = { writes_within = ["!x"] }\n', "begins with"),
        ('[[ask]]\nname = "b"\nprefix = ["make"]\npreview = "never"\nallow_if_preview = {}\n', "never"),
        ('[[ask]]\nname = "b"\npath = "x"\nallow_if_preview = {}\n', "only commands"),
        ('[[ask]]\nname = "b"\nprefix = ["make"]\nallow_if_preview = { deletes = -1 }\n', "deletes"),
    ],
)
def test_a_condition_on_effects_that_means_nothing_is_named(rule: str, said: str) -> None:
    broken = read(rule).broken
    assert broken is not None and said in broken


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_a_rule_that_does_not_ask_cannot_speak_of_previews(effect: str) -> None:
    rules = read(f'[[{effect}]]\nname = "b"\nprefix = ["npm"]\npreview = "always"\n')
    assert rules.broken is not None and "only a rule that asks" in rules.broken


def test_a_directory_confines_a_rule_and_the_paths_that_it_allows() -> None:
    rules = read('[[allow]]\nname = "x"\nprefix = ["make"]\ndirectory = "/home/me/project"\n')
    assert say(rules, "make a/b", cwd="/home/me/project/sub") == "allow"
    assert say(rules, "make a/b", cwd="/home/me/projects") == "ask"
    assert say(rules, "make /etc/passwd") == "ask"
    assert say(rules, "make ../x") == "ask"


def test_a_rule_can_be_for_one_tool_or_for_trusted_sessions_or_for_a_while() -> None:
    rules = read(
        '[[allow]]\nname = "x"\nprefix = ["make"]\ntool = "t"\n'
        '[[allow]]\nname = "y"\nprefix = ["ninja"]\ntrust = ["trusted_operator"]\n'
        '[[allow]]\nname = "z"\nprefix = ["tox"]\nuntil = 100.0\n'
    )
    assert [say(rules, "make", tool="t"), say(rules, "make", tool="u")] == ["allow", "ask"]
    assert [say(rules, "ninja", trust="trusted_operator"), say(rules, "ninja")] == ["allow", "ask"]
    assert [say(rules, "tox", now=99.0), say(rules, "tox", now=100.0)] == ["allow", "ask"]


@pytest.mark.parametrize(
    ("example", "complaint"),
    [('match = ["git pull"]', "does not match 'git pull'"), ('not_match = ["git push x"]', "matches 'git push x'")],
)
def test_a_rule_that_fails_its_examples_is_reported_and_everything_is_asked(example: str, complaint: str) -> None:
    rules = read(f'[[allow]]\nname = "x"\nprefix = ["git", "push"]\n{example}\n')
    assert rules.broken is not None
    assert complaint in rules.broken
    assert say(rules, "git push") == "ask"


@each_row(
    ("text", "complaint"),
    [
        ('[[allow]]\nname = "x"\nprefix = []\n', "empty prefix"),
        ('[[allow]]\nname = "x"\nprefix = ["a"]\nprogram = "b"\n', "exactly one"),
        ('[[deny]]\nname = "x"\nprefix = ["a"]\ndirectory = "b"\n', "absolute"),
        ("read_only = 3\n", "read_only"),
        ('strict = "x"\n', "strict"),
        ("allow = 3\n", "double brackets"),
        ("[[permit]]\n", "'permit'"),
    ],
)
def test_unreadable_text_is_reported(text: str, complaint: str) -> None:
    assert complaint in (read(text).broken or "")


def test_rules_are_written_so_that_they_read_back_the_same() -> None:
    rules = Rules(
        deny=(Rule(name='quote " and\nline \x7f é', text='a\t"b"\\'),),
        ask=(Rule(name="p", pattern="git * --force*", justification="careful"),),
        allow=(
            Rule(name="x", prefix=("a", "b"), options=("-v",), directory="/x", until=5.5, trust=("trusted_system",)),
        ),
        read_only=True,
    )
    assert read(rules_text(rules)) == rules


@each_row("setting", [True, False, None])
def test_the_setting_about_commands_that_only_look_is_written_as_it_was_read(setting: bool | None) -> None:
    text = "" if setting is None else f"read_only = {str(setting).lower()}\n"
    assert read(text).read_only is setting
    assert rules_text(read(text)) == text
