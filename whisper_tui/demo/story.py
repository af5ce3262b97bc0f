"""The story of the demo as data: the calls of two agents, the decisions of the human, and the expected results."""

from dataclasses import dataclass
from typing import Any, Literal

Agent = Literal["site builder", "release agent"]

BUILDER: Agent = "site builder"
RELEASER: Agent = "release agent"


@dataclass(frozen=True)
class Approves:
    """The human approves the call unchanged."""

    for_session: bool = False
    """True if the same command is not asked again in this session."""


@dataclass(frozen=True)
class Edits:
    """The human edits the arguments and approves the edited command."""

    args: tuple[str, ...]


@dataclass(frozen=True)
class Rewrites:
    """The human changes the content that an edit leaves in its file, and approves that."""

    content: str


@dataclass(frozen=True)
class AppliesPreview:
    """The human previews the command, and has exactly its changes made. Without previews here, it is approved."""


@dataclass(frozen=True)
class Denies:
    """The human denies the call, with a reason."""

    reason: str


@dataclass(frozen=True)
class IsNotAsked:
    """An earlier approval for the session allows the call."""


Move = Approves | Edits | Rewrites | AppliesPreview | Denies | IsNotAsked


@dataclass(frozen=True)
class Printed:
    """The expected output of a scene's command, byte for byte as UTF-8; of an agent's own tool, what it answers."""

    out: str = ""
    err: str = ""
    whole: bool = True
    """False: only its beginning; the rest depends on time, or is very long."""


@dataclass(frozen=True)
class StoryScene:
    """One call of an agent, from its arguments to its expected answer."""

    id: str
    agent: Agent
    tool: str
    arguments: dict[str, Any]
    title: str
    """The action that the agent wants to take, as the end of "The agent wants to"."""
    move: Move
    caption: str
    """Advice for the person at the cockpit while the call waits."""
    after: str
    """Advice once the call has ended as planned: its outcome, and the next step."""
    otherwise: str = "It did not run, and the agent was told your reason. n: next call."
    """Advice once it has ended in the other way: denied in place of run, or run in place of denied."""
    running: str = ""
    """Advice while the command runs."""
    printed: Printed = Printed()
    exit_code: int | None = 0
    """None: it never runs, or the agent's own tool does what was approved."""
    told: str | None = None
    """Words that the answer must contain beside the result."""
    typed: tuple[tuple[str, str], ...] = ()
    """The input of the human: the end of a question in the terminal, and the line to type."""
    out_bytes: int | None = None
    """Number of bytes on standard output, if they are too many to be listed here."""
    leaves: str | None = None
    """A word in the command line of the background process that it leaves behind, and that the human ends."""
    follows: str | None = None
    """The scene that must be over before the agent submits this one."""
    only_if_denied: bool = False
    """True if the agent submits it only if the scene that it follows was denied."""
    pause_s: float = 1.0
    """Seconds that the agent pauses before it submits the call, in a terminal."""


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

MAKEFILE = """\
# What the agents and you run by hand: make site, make check.
site:
	./build.sh

check: site
	./test.sh
"""
"""The file of the project that an agent edits; its new last line is what the human takes out."""
WANTED = MAKEFILE.replace("\t./build.sh\n", "\tmkdir -p build\n\t./build.sh\n")

CRAWL_LINES = 400_000


def crawl_line(number: int) -> str:
    """Return one line of the noisy command, counted from 1; 100 bytes."""
    return f"{number:>7} GET /plants/{number * 7919 % 1_000_000:06}.html 200 {'checked':<63}\n"


END = "That was the demo. q leaves it. Now your own agent: whisper-tui install claude"
"""The advice when the story is over."""
FAREWELL = "The demo is over, and all that it ran with it. Connect your own agent: whisper-tui install claude"
"""Printed once the cockpit of the demo is closed."""

SCENES: tuple[StoryScene, ...] = (
    StoryScene(
        id="hours",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": "echo 'Open Monday to Saturday, 9 to 18' > hours.txt",
            "description": "Change the opening hours that the contact page shows",
        },
        title="change the opening hours",
        move=Approves(),
        caption="The site builder overwrites hours.txt. Is the diff right? Press a to approve.",
        after="It ran, and the file is changed: ✔ in the list. n: next call.",
        pause_s=0.3,
    ),
    StoryScene(
        id="clean",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={"command": "rm -rf cache drafts", "description": "Remove temporary files, for a fresh build"},
        title="remove temporary files, and your drafts with them",
        move=Denies(reason="The drafts are my writing. Remove only the cache."),
        caption="Temporary files? The drafts are yours! Press d, type: only the cache; Enter.",
        after="It did not run. The agent was told your reason word for word. n: next call.",
        otherwise="It ran, and the drafts are gone (the demo's). d denies and says why.",
        exit_code=None,
        pause_s=1.2,
    ),
    StoryScene(
        id="makefile",
        agent=BUILDER,
        tool="Edit",
        arguments={
            "file_path": "Makefile",
            "old_string": MAKEFILE[MAKEFILE.index("site:") :],
            "new_string": WANTED[WANTED.index("site:") :] + "\t./release.sh production\n",
            "description": "Make the directory before the build",
        },
        title="edit the Makefile, which then also releases to production",
        move=Rewrites(content=WANTED),
        caption="An edit: each check would also go live! Press e, delete the last line, Ctrl+S.",
        after="The agent's own tool wrote your version, and the agent knows. n: next call.",
        otherwise="The file is as it was, and the agent was told your reason. n: next call.",
        printed=Printed(out=WANTED),
        exit_code=None,
        told="The human changed the edit",
        pause_s=1.6,
    ),
    StoryScene(
        id="clean-by-name",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={"command": "rm -rf cache", "description": "Remove the cache alone, as you asked"},
        title="remove the cache alone, as it was told",
        move=Approves(),
        caption="It listened: only the cache goes. Press a; for 3 seconds, u undoes that.",
        after="Deleted, as you allowed. n: next call.",
        follows="clean",
        only_if_denied=True,
        pause_s=1.2,
    ),
    StoryScene(
        id="release",
        agent=RELEASER,
        tool="execute_command",
        arguments={"command": "./release.sh", "args": ["production"], "timeout": 30},
        title="release the site to production",
        move=Edits(args=("staging",)),
        caption="This goes to production! Press e, change it to staging, then Ctrl+S.",
        after="The agent was told what you changed, and what really ran. n: next call.",
        printed=Printed(
            out="Releasing 4 pages to \x1b[1mstaging\x1b[0m\n\x1b[32mDone:\x1b[0m staging has the new site\n"
        ),
        told="What ran: ./release.sh staging",
        pause_s=2.0,
    ),
    StoryScene(
        id="build",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={"command": "./build.sh", "description": "Build the site into build/"},
        title="build the site",
        move=AppliesPreview(),
        caption="What will this script change? s runs it on a copy; a makes these changes.",
        after="Real now, without a second run: J would undo it. n: next call.",
        printed=BUILD,
        pause_s=4.0,
    ),
    StoryScene(
        id="test",
        agent=BUILDER,
        tool="execute_command",
        arguments={"command": "./test.sh"},
        title="run the tests",
        move=Approves(for_session=True),
        caption="Tests run often. F chooses the whole session for this command, then a.",
        after="The test failed, and the agent was told why: it corrects tax.conf next.",
        printed=TEST_FAILS,
        exit_code=1,
        follows="build",
        pause_s=1.5,
    ),
    StoryScene(
        id="fix",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": "echo 'rate = 20' > tax.conf",
            "description": "Correct the tax rate that the failing test complains about",
        },
        title="correct what the failing test complains about",
        move=Approves(),
        caption="The agent corrects the rate that the test named. Press a if the diff is right.",
        after="The file is changed; the agent runs its tests again.",
        follows="test",
        pause_s=2.0,
    ),
    StoryScene(
        id="test-again",
        agent=BUILDER,
        tool="execute_command",
        arguments={"command": "./test.sh"},
        title="run the tests again",
        move=IsNotAsked(),
        caption="The same command as before.",
        after="Not asked: you approved this command for the session. u takes that back.",
        printed=TEST_PASSES,
        told="approved this same command for this session",
        follows="fix",
        pause_s=1.0,
    ),
    StoryScene(
        id="price",
        agent=BUILDER,
        tool="mcp__shop__set_price",
        arguments={"item": "rake", "price": 120, "currency": "EUR"},
        title="set a price in the shop, by the tool of another server",
        move=Approves(),
        caption="A tool of another server, with its arguments. a once; A for all such calls.",
        after="The agent called its tool, and the shop has the price. n: next call.",
        printed=Printed(out='{"rake": "120 EUR"}\n'),
        exit_code=None,
        follows="test-again",
        pause_s=1.0,
    ),
    StoryScene(
        id="preview",
        agent=BUILDER,
        tool="run_shell_command",
        arguments={
            "command": "./serve.sh & echo 'The preview is starting'",
            "description": "Leave a preview server running in the background (it only writes a line now and then)",
        },
        title="leave a preview server in the background",
        move=Approves(),
        caption="This leaves a server in the background. Press a, and see where it goes.",
        after="The command ended, its server did not: k ends what was left behind.",
        printed=Printed(out="The preview is starting\npreview: ready\n", whole=False),
        leaves="serve.sh",
        follows="build",
        pause_s=4.0,
    ),
    StoryScene(
        id="tag",
        agent=RELEASER,
        tool="run_in_terminal",
        arguments={"command": "./tag.sh", "description": "Tag the release; the script asks for its name"},
        title="tag the release; the script asks questions in a terminal",
        move=Approves(),
        caption="This script asks questions. Press a, then T to answer in its terminal.",
        running="T types into its terminal: answer its questions. Ctrl+] comes back.",
        after="The agent got what the terminal showed.",
        printed=Printed(
            out="Name of this release: spring\r\n"
            "Tag the site as \x1b[1mspring\x1b[0m? [y/N] y\r\n"
            "\x1b[32mTagged\x1b[0m spring\r\n"
        ),
        typed=(("Name of this release: ", "spring"), ("? [y/N] ", "y")),
        follows="release",
        pause_s=2.0,
    ),
    StoryScene(
        id="crawl",
        agent=RELEASER,
        tool="run_shell_command",
        arguments={"command": "./crawl.sh", "description": "Check every link of the site (40 MB of log, quickly)"},
        title="check every link, which writes 40 MB of log",
        move=Approves(),
        caption="40 MB of log: approve it and watch. Ctrl+F finds a word, f follows the end.",
        after="All of it is kept; the agent got a part that fits. H shows all past calls.",
        printed=Printed(out="".join(map(crawl_line, range(1, 201))), whole=False),
        out_bytes=CRAWL_LINES * 100,
        follows="release",
        pause_s=6.0,
    ),
)
