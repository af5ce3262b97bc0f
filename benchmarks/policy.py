"""How long a judgement takes: of ordinary commands, and of the worst texts that fit the limit; prints Markdown.

The baseline is what splitting the same text with the standard library costs.
"""

import shlex
import statistics
import time
from collections.abc import Callable

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.view import Question, view

ROUNDS = 30
ROOT = "/workspace"
RULES = Rules(
    read_only=True,
    deny=tuple(Rule(name=f"deny {n}", prefix=(f"program{n}", "sub")) for n in range(50)),
    allow=tuple(Rule(name=f"allow {n}", prefix=(f"tool{n}", "sub")) for n in range(50)),
)

ORDINARY = {
    "one command": "git status --short",
    "a pipe": "npm run build 2>&1 | head -100",
    "a chain": "cd src && make -j4 && ls -la build/*.o",
    "a loop": 'for f in *.py; do\n  wc -l "$f"\ndone',
    "a document": "cat <<'EOF' > notes.md\n" + "a line of ordinary text\n" * 20 + "EOF",
}
WORST = {
    "2,490 words": "echo " + "a b " * 2490,
    "4,990 commands": "a;" * 4990,
    "1,000 nested substitutions": "$(" * 1000 + "ls" + ")" * 1000,
    "9,000 parentheses": "(" * 9000,
    "3,000 nested arithmetic": "$((" * 3000,
    "9,999 quotes": '"' * 9999,
    "9,999 backticks": "`" * 9999,
    "1,900 wrappers": "sudo " * 1900 + "ls",
    "1,200 shells in shells": "bash -c " * 1200 + "ls",
    "900 nested cases": "case x in " * 900,
    "text that is no text": "\x00\x1b\u202e" * 3000,
    "830 secrets in options": "a --token b " * 830,
    "a million characters": "rm -rf x; " * 100_000,
}


def judged(text: str) -> str:
    """The verdict, with nothing remembered from an earlier reading of the same text."""
    view.__globals__["_view_of_text"].cache_clear()
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    resolved = Resolved(program="/bin/bash", cwd=ROOT, shell="bash")
    return evaluate(Question("s", ROOT, spec, "what it is for", resolved), RULES, ()).kind


def split(text: str) -> None:
    """What the standard library makes of it."""
    try:
        list(shlex.shlex(text, posix=True, punctuation_chars=True))
    except ValueError:
        return


def milliseconds(measure: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and largest of several rounds."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        measure()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken), max(taken)


def main() -> None:
    """Print one table."""
    judged("ls")
    print("| text | verdict | median | largest | split by the standard library |\n|---|---|---|---|---|")
    for texts, rounds in ((ORDINARY, ROUNDS), (WORST, 5)):
        for name, text in texts.items():
            median, largest = milliseconds(lambda text=text: judged(text), rounds)
            base, _ = milliseconds(lambda text=text: split(text), rounds)
            print(f"| {name} | {judged(text)} | {median:.2f} ms | {largest:.2f} ms | {base:.2f} ms |")


if __name__ == "__main__":
    main()
