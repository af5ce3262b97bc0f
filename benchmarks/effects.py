"""How long the effects of a command take to state, what they and large edits cost the card and the keys; as Markdown.

The baseline of the card is the same cockpit without effects, in the same run and in turn with it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from terminal import Terminal

from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell

APP = Path(__file__).with_name("_effects_app.py")
ROUNDS = 15
KEYS = 30
EDITS = 12
"""Rounds of the cards of edits, each of which waits for the longest difference."""
SETTLED_S = 0.3
LAID_OUT_S = 1.5
"""Seconds after which the longest difference is laid out."""
UP, DOWN = b"\x1b[A", b"\x1b[B"
SETUP = r"""
git init -q -b main; git config user.name Ann; git config user.email ann@example.org
mkdir -p src many cache/deep
for n in $(seq 200); do echo "line $n" > src/module$n.py; done
seq 2000 > src/long.py; echo 'rate = 10' > app.conf; seq 20000 > data.csv
printf '#!/bin/sh\nset -e\ncd "$(dirname "$0")"\nrm -rf build\nmkdir build\necho v1 > build/version\n' > deploy.sh
printf 'deploy: src\n\trm -rf dist\n\tcp -r src dist\n' > Makefile
echo '{"scripts": {"build": "rm -rf dist && mkdir dist"}}' > package.json
echo 'cache/' > .gitignore
git add -A; git commit -qm Begin; echo more >> src/module1.py; git commit -qam More; touch new.txt
for n in $(seq 1500); do echo x > many/$n; done
for n in $(seq 40); do mkdir cache/deep/$n; (cd cache/deep/$n; seq 500 | xargs touch); done
"""
QUICK = {
    "nothing to state": "ls -la src | head",
    "a redirection": "echo 'rate = 20' > app.conf",
    "a here-document": "cat > src/long.py <<'EOF'\n" + "".join(f"{n * 2}\n" for n in range(1000)) + "EOF",
    "a deletion of 200 files": "cp -r src copy && rm -rf copy",
    "an edit": "sed -i 's/line/LINE/g; 2d' src/module1.py",
    "a script": "./deploy.sh --force",
    "a recipe": "make deploy",
    "a script of package.json": "npm run build",
    "another machine": "ssh prod.example.org uptime",
    "forty commands": "; ".join(f"echo {n} > out{n}.txt" for n in range(40)),
    "a program that is not known": "terraform apply -auto-approve",
}
BOUNDED = {
    "a deletion, with git": "rm -rf src",
    "a deletion of 1,500 new files": "rm -rf many",
    "a deletion of 20,000 ignored files": "rm -rf cache",
    "an edit of 200 files": "sed -i 's/line/LINE/g' src/*.py",
    "git clean": "git clean -fd",
    "git reset": "git reset --hard HEAD~1",
    "git push": "git push --force origin main",
    "a comparison of 20,000 lines": "cp data.csv old.csv && sed -i s/1/2/ data.csv",
    "two hundred scripts": "; ".join(f"bash src/module{n}.py" for n in range(1, 200)),
}  # fmt: skip


def stated(workspace: Path) -> None:
    """Print how long effects take to state."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(workspace)}
    print("Milliseconds until the effects of a command are stated. Bounds: 20, or 200 where trees or git are read.\n")
    print("| command | median | worst | processor time | bound |\n|---|---|---|---|---|")
    for table, bound in ((QUICK, 20), (BOUNDED, 200)):
        for name, text in table.items():
            took, used = [], []
            for _ in range(ROUNDS):
                begin, cpu = time.perf_counter(), time.process_time()
                effects_of(Shell(text=text), str(workspace), [str(workspace)], environment)
                took.append((time.perf_counter() - begin) * 1000)
                used.append((time.process_time() - cpu) * 1000)
            median, own = statistics.median(took), statistics.median(used)
            print(f"| {name} | {median:.1f} | {max(took):.1f} | {own:.1f} | {bound} |", flush=True)


def row(name: str, found: list[float], baseline: list[float]) -> str:
    """A row of the table: median, the 95th percentile, and the median against the baseline's."""
    middle, late = statistics.median(found), statistics.quantiles(found, n=20, method="inclusive")[18]
    return f"| {name} | {middle:.0f} | {late:.0f} | {middle / statistics.median(baseline):.2f} |"


def keys(workspace: Path) -> None:
    """Print what effects cost the card: from a key to the heading of another call, and to its effects."""
    terminals = {
        how: Terminal([sys.executable, str(APP), how, str(workspace)], b"Call 1") for how in ("without", "with", "late")
    }
    painted: dict[str, list[float]] = {how: [] for how in terminals}
    appeared: list[float] = []
    try:
        for terminal in terminals.values():
            terminal.drain(2)
        for _ in range(KEYS):
            for how, terminal in terminals.items():
                for key, effect in ((DOWN, b"Call 2"), (UP, b"Call 1")):
                    terminal.drain(SETTLED_S)  # the effects of the call before have been drawn
                    painted[how].append(terminal.key(key, effect))
            terminals["with"].drain(SETTLED_S)
            appeared.append(terminals["with"].key(DOWN, b"two.conf (new"))
            terminals["with"].drain(SETTLED_S)
            terminals["with"].key(UP, b"Call 1")
    finally:
        for terminal in terminals.values():
            terminal.close()
    print("\nFrom a key press to the card of another call on the terminal, in milliseconds:\n")
    print("| card | median | 95 % | times its baseline |\n|---|---|---|---|")
    print(row("without effects (baseline)", painted["without"], painted["without"]))
    print(row("with effects, first paint", painted["with"], painted["without"]))
    print(row("with effects that take 200 ms, first paint", painted["late"], painted["without"]))
    print(row("with effects, until they are shown", appeared, painted["without"]))


def edits(workspace: Path) -> None:
    """Print what the card of a large edit costs, beside that of one line of a short file."""
    names = {"edit": "one line of a short file", "edit-2mb": "one line of 2 MB", "edit-5000": "5,000 lines"}
    terminals = {how: Terminal([sys.executable, str(APP), how, str(workspace)], b"Call 1") for how in names}
    painted: dict[str, list[float]] = {how: [] for how in names}
    busy: dict[str, list[float]] = {how: [] for how in names}
    there: dict[str, list[float]] = {how: [] for how in names}
    try:
        for terminal in terminals.values():
            terminal.drain(2)
        for _ in range(EDITS):
            for how, terminal in terminals.items():
                painted[how].append(terminal.key(DOWN, b"Call 2"))
                busy[how].append(terminal.key(UP, b"Call 1"))  # while the difference is compared and laid out
                terminal.drain(LAID_OUT_S)
                there[how].append(terminal.key(DOWN, b"marker"))
                terminal.drain(LAID_OUT_S)
                terminal.key(UP, b"Call 1")
                terminal.drain(LAID_OUT_S)
    finally:
        for terminal in terminals.values():
            terminal.close()
    print("\nFrom a key press to the card of an edit on the terminal, in milliseconds:\n")
    print("| card | median | 95 % | times its baseline |\n|---|---|---|---|")
    for how, name in names.items():
        print(row(f"an edit of {name}, first paint{' (baseline)' * (how == 'edit')}", painted[how], painted["edit"]))
        print(row(f"an edit of {name}, the next key at once", busy[how], painted["edit"]))
        print(row(f"an edit of {name}, until its difference is shown", there[how], painted["edit"]))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as name:
        workspace = Path(name) / "work"
        workspace.mkdir()
        subprocess.run(["bash", "-c", SETUP], cwd=workspace, check=True, stdout=subprocess.DEVNULL)
        stated(workspace)
        keys(workspace)
        edits(workspace)


if __name__ == "__main__":
    main()
