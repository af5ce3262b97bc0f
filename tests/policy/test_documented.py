"""The page about the policy names every risk that the code can find and every key of a rule."""

import re
from pathlib import Path

from whisper_tui.policy.risks.call_risks import ALWAYS_ASKED
from whisper_tui.policy.rules.rule import Rule

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "policy.md").read_text("utf-8")
SOURCE = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "whisper_tui" / "policy").rglob("*.py")))


def ids_in_the_code() -> set[str]:
    written = re.findall(r'(?:Danger\(\s*|Risk\(\s*id=)"([a-z-]+)"', SOURCE)
    return set(written) | ALWAYS_ASKED


def table(heading: str) -> set[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return {
        name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }


def test_every_risk_is_documented_and_no_other() -> None:
    assert table("Risks that always need approval") == ALWAYS_ASKED
    assert table("Other risks") == ids_in_the_code() - ALWAYS_ASKED


def test_every_key_of_a_rule_is_documented_and_no_other() -> None:
    assert table("Rules") == set(Rule.model_fields)


def test_no_id_of_a_risk_is_put_together_at_run_time() -> None:
    made = re.findall(r"\b(?:Danger|Risk)\(\s*(?:id=)?([^\s,)]+)", SOURCE)
    assert {word for word in made if not word.startswith('"')} == {"NamedTuple", "danger.id"}
