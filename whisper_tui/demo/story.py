"""The demo's story as data: what two agents ask for, what the human does about it, and what comes of it."""

from dataclasses import dataclass
from typing import Any, Literal

Agent = Literal["site builder", "release agent"]

BUILDER: Agent = "site builder"
RELEASER: Agent = "release agent"


@dataclass(frozen=True)
class Approves:
    """The human lets it run as it is."""

    for_session: bool = False
    """Whether the same command is not asked again in this session."""


@dataclass(frozen=True)
class Edits:
    """The human changes the arguments and lets the changed command run."""

    args: tuple[str, ...]


@dataclass(frozen=True)
class Denies:
    """The human says no, and why."""

    reason: str


@dataclass(frozen=True)
class IsNotAsked:
    """An earlier approval for the session lets it through."""


Move = Approves | Edits | Denies | IsNotAsked


@dataclass(frozen=True)
class Printed:
    """What the command of a scene writes, byte for byte as UTF-8."""

    out: str = ""
    err: str = ""
    whole: bool = True
    """False: only how it begins; what follows depends on time, or is very long."""


@dataclass(frozen=True)
class Scene:
    """One call of an agent, from what it asks for to what it is told."""

    id: str
    agent: Agent
    tool: str
    arguments: dict[str, Any]
    title: str
    """What the agent wants, as the end of "The agent wants to"."""
    move: Move
    printed: Printed = Printed()
    exit_code: int | None = 0
    """None: it never runs."""
    told: str | None = None
    """Words that the agent must be told beyond the result."""
    typed: tuple[tuple[str, str], ...] = ()
    """What the human types: the end of a question in the terminal, and the line to answer."""
    out_bytes: int | None = None
    """Bytes on standard output where they are too many to be written down here."""
    leaves: str | None = None
    """A word of the command line of the one process that it leaves behind, which the human then ends."""
    follows: str | None = None
    """The scene that must be over before the agent asks."""
    only_if_denied: bool = False
    """Whether the agent asks for it only because what it follows was denied."""
    pause_s: float = 1.0
    """Seconds that the agent thinks before it asks, in a terminal."""


BUILD = Printed(
    out="\x1b[1mBuilding the garden site\x1b[0m\n"
    + "".join(f"  \x1b[32mok\x1b[0m  {page}.html\n" for page in ("index", "plants", "tools", "contact"))
    + "".join(f"\r  images [{'#' * (percent // 5):<20}] {percent:>3}%" for percent in range(10, 101, 10))
    + "\n\x1b[1;32mBuilt 4 pages and 12 images\x1b[0m\n",
    err="\x1b[33mwarning:\x1b[0m plants.md links to ferns.md, which does not exist\n",
)

_CHECKS = "".join(
    f"\x1b[32mPASS\x1b[0m {check}\n"
    for check in ("every page has a title", "every image has a caption", "the contact form has a label")
)

TEST_FAILS = Printed(
    out=f"{_CHECKS}\x1b[1;31mFAIL\x1b[0m prices include the tax\n\x1b[1;31m4 checks, 1 failed\x1b[0m\n",
    err="prices.test: a rake for 100.00 should cost 120.00 with tax\n"
    "    expected \x1b[32m120.00\x1b[0m\n"
    "    was      \x1b[31m119.00\x1b[0m\n"
    "    the rate comes from tax.conf, line 1\n",
)

TEST_PASSES = Printed(
    out=f"{_CHECKS}\x1b[32mPASS\x1b[0m prices include the tax\n\x1b[1;32m4 checks, all good\x1b[0m\n",
)

CRAWL_LINES = 400_000


def crawl_line(number: int) -> str:
    """One line of the noisy command, from 1; 100 bytes."""
    return f"{number:>7} GET /plants/{number * 7919 % 1_000_000:06}.html 200 {'checked':<63}\n"


SCENES: tuple[Scene, ...] = (
    Scene(
        id="build",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={"command": "./build.sh", "description": "Build the site into build/"},
        title="build the site",
        move=Approves(),
        printed=BUILD,
        pause_s=0.5,
    ),
    Scene(
        id="test",
        agent=BUILDER,
        tool="execute_command",
        arguments={"command": "./test.sh"},
        title="run the tests",
        move=Approves(for_session=True),
        printed=TEST_FAILS,
        exit_code=1,
        pause_s=1.5,
    ),
    Scene(
        id="fix",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": "echo 'rate = 20' > tax.conf",
            "description": "Correct the tax rate that the failing test complains about",
        },
        title="correct what the failing test complains about",
        move=Approves(),
        follows="test",
        pause_s=2.0,
    ),
    Scene(
        id="test-again",
        agent=BUILDER,
        tool="execute_command",
        arguments={"command": "./test.sh"},
        title="run the tests again",
        move=IsNotAsked(),
        printed=TEST_PASSES,
        told="approved this same command for the session",
        follows="fix",
        pause_s=1.0,
    ),
    Scene(
        id="release",
        agent=RELEASER,
        tool="execute_command",
        arguments={"command": "./release.sh", "args": ["production"], "timeout": 30},
        title="release the site to production",
        move=Edits(args=("staging",)),
        printed=Printed(
            out="Releasing 4 pages to \x1b[1mstaging\x1b[0m\n\x1b[32mDone:\x1b[0m staging has the new site\n"
        ),
        told="What ran: ./release.sh staging",
        pause_s=2.5,
    ),
    Scene(
        id="clean",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": 'OUT=build; rm -rf "./$OUT"',
            "description": "Remove what was built, for a fresh start",
        },
        title="remove what was built, through a variable",
        move=Denies(reason="Name the directory itself: a typing error in a variable could name another one."),
        exit_code=None,
        follows="test-again",
        pause_s=2.0,
    ),
    Scene(
        id="clean-by-name",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={"command": "rm -rf ./build", "description": "Remove what was built, by its name"},
        title="remove what was built, by its name, as it was told",
        move=Approves(),
        follows="clean",
        only_if_denied=True,
        pause_s=1.5,
    ),
    Scene(
        id="preview",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": "./serve.sh & echo 'The preview is starting'",
            "description": "Leave a preview server running in the background (it only writes a line now and then)",
        },
        title="leave a preview server in the background",
        move=Approves(),
        printed=Printed(out="The preview is starting\npreview: ready\n", whole=False),
        leaves="serve.sh",
        pause_s=4.0,
    ),
    Scene(
        id="tag",
        agent=RELEASER,
        tool="run_in_terminal",
        arguments={"command": "./tag.sh", "description": "Tag the release; the script asks for its name"},
        title="tag the release; the script asks questions in a terminal",
        move=Approves(),
        printed=Printed(
            out="Name of this release: spring\r\n"
            "Tag the site as \x1b[1mspring\x1b[0m? [y/N] y\r\n"
            "\x1b[32mTagged\x1b[0m spring\r\n"
        ),
        typed=(("Name of this release: ", "spring"), ("? [y/N] ", "y")),
        pause_s=6.0,
    ),
    Scene(
        id="crawl",
        agent=RELEASER,
        tool="run_shell_command",
        arguments={"command": "./crawl.sh", "description": "Check every link of the site (40 MB of log, quickly)"},
        title="check every link, which writes 40 MB of log",
        move=Approves(),
        printed=Printed(out="".join(map(crawl_line, range(1, 201))), whole=False),
        out_bytes=CRAWL_LINES * 100,
        pause_s=8.0,
    ),
)
