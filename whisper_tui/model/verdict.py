"""Verdicts of the policy, and the resolution of a command: its programs and files on this machine."""

from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.call import EditedFile
from whisper_tui.model.run import Sandbox
from whisper_tui.model.value import Count, Value

NO_SUBSTITUTION = "no substitution"
STRICT = "strict"
READ_ONLY_RULE = "built-in: only looks"
"""Name of the built-in list of commands that only read, as a rule. It is stored in journals."""
EDITS_RULE = "built-in: edits in the workspace"
"""Name of the permission for edits of ordinary files in the workspace, as a rule. It is stored in journals."""
SUBAGENT_RULE = "built-in: sub-agents are recorded"
"""Name of the permission for the start of sub-agents, as a rule. It is stored in journals."""
BUILT_IN_PREFIX = "built-in: "
HELD_BACK_RULE = "built-in: changes in the workspace"
DRAFT_RULE = "built-in: in the draft of the session"
"""Name of the permission to run in a draft, as a rule. It is stored in journals."""
IN_DRAFT = "it runs in the draft of its session, so that nothing of it is real yet"
"""Why nothing is kept of a call whose command runs in a draft. It is stored in journals, and tells such calls."""
"""Prefix of the names of permissions that come with the program."""
PROJECT_PREFIX = "project: "
"""Prefix of the names of a project's own rules."""

CLIENT_PREFIX = "client: "
"""Prefix of the names of an agent client's own rules."""

_BUILT_IN = frozenset({NO_SUBSTITUTION, STRICT})


def client_rule_name(client: str, entry: str) -> str:
    """The name of a rule that a client has itself, by the client's name and how the rule is written there."""
    return f"{CLIENT_PREFIX}{client}: {entry}"


def whose_rule(name: str) -> str:
    """Return a rule with its origin, in words. `name` is empty if it is not known."""
    if name in _BUILT_IN or name.startswith(BUILT_IN_PREFIX):
        return f"the built-in rule {name.removeprefix(BUILT_IN_PREFIX)}"
    if name.startswith(PROJECT_PREFIX):
        return f"the project's rule {name.removeprefix(PROJECT_PREFIX)}"
    if name.startswith(CLIENT_PREFIX):
        client, _, entry = name.removeprefix(CLIENT_PREFIX).partition(": ")
        return f"the rule {entry} of {client} itself"
    return f"the user's rule {name}".rstrip()


class Risk(Value):
    """One thing a human should notice before deciding."""

    id: str
    """Stable, documented, lower-case with dashes."""
    sentence: str
    """Plain words for the approver."""
    span: tuple[int, int] | None = None
    """Characters of the shell text or joined argv that it is about; end exclusive."""


GRAVE = frozenset(
    {
        "control-characters", "deceptive-characters", "look-alikes", "hidden-tail", "soothing-words",
        "destructive", "empty-variable", "ends-processes", "privilege", "sends-data",
        "secret-in-arguments", "reads-secrets", "sensitive-write", "keystroke-injection",
        "unseen-script", "past-hook",
    }
)  # fmt: skip
"""Ids of severe risks: damage that cannot be undone, secrets, other rights, and text that deceives."""


def is_grave(risk: Risk) -> bool:
    """True if a person should stop and read."""
    return risk.id in GRAVE


NO_RULE_MATCHES = "no rule matches this command"
"""The reason of a verdict for a command about which nobody has said anything."""


PreviewRule = Literal["always", "never"]
"""`always`: a command that is asked about is previewed by itself. `never`: it cannot be previewed."""


class PreviewCondition(Value):
    """The effects that a previewed command may have for a rule to make them real without a human (decision 12)."""

    writes_within: tuple[str, ...] = ()
    """Patterns of the files that it may create, change or delete, in the syntax of `Rule.path`. Empty: none."""
    deletes: Count = 0
    """Files and directories that it may delete among them."""
    network: bool = False
    """True if it may have tried to reach other machines, which a preview refuses."""
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = 0
    """The exit code with which it must have ended. None: any; a program that fails may change files as well."""
    rewrites_history: bool = True
    """True if it may move or delete branches and tags of git otherwise than by adding commits to a branch."""

    no_writes: tuple[str, ...] = ()
    """Patterns of files that it may not change although they are within: rules ask about their edits, or deny them."""

    def words(self) -> str:
        """Return the effects that it permits, in words."""
        where = f"writes only within {', '.join(self.writes_within)}" if self.writes_within else "changes no file"
        deletes = f"deletes at most {self.deletes:,}" if self.deletes else "deletes nothing"
        network = "" if self.network else ", tries no other machine"
        ends = "" if self.exit_code is None else f", and exits with {self.exit_code}"
        return f"{where}, {deletes}{network}{ends}"


class UndoPlan(Value):
    """How the changes of a command are kept, so that they can be undone after its end (decision 16)."""

    how: Literal["copies", "view", "none"]
    """`copies`: the files that it names are kept before it starts. `view`: it runs in a view of the files, and its
    changes become real when it ends. `none`: they are not kept."""
    why: str = ""
    """Why they are not kept, as a clause. Empty: they are."""


class Verdict(Value):
    """The policy's answer about a call. Deny beats ask, and ask beats allow."""

    kind: Literal["allow", "ask", "refuse"]
    reason: str
    """Why, in one sentence."""
    rule: str | None = None
    """The rule that decided, where one did."""
    grant_id: str | None = None
    """The standing approval that allowed it, where one did."""
    denial_id: str | None = None
    """The session denial that refused it, where one did."""
    sandbox: Sandbox | None = None
    """Sandbox of the run if this verdict alone allows it. None: unconfined."""
    preview: PreviewRule | None = None
    """Of a call that is asked about: what its rule says about previews."""
    allow_if_preview: tuple[PreviewCondition, ...] = ()
    """Of a call that is asked about: the conditions under which the changes of its preview are made real without a
    human, all of which must hold. Empty: a human decides."""
    held_back: bool = False
    """True if nobody is asked while its preview runs: only what that preview finds decides whether somebody is."""
    undo: UndoPlan | None = None
    """How its changes are kept if it runs. None: nobody has asked for that, or it changes nothing."""
    risks: tuple[Risk, ...] = ()
    prefixes: tuple[tuple[str, ...], ...] = ()
    """Beginnings that may be remembered, one for each command of the call. Empty: only exactly as it is."""
    targets: tuple[str, ...] = ()
    """Of a call that its agent carries out: patterns of files, hosts (with blanks between them) or names of tools that
    may be remembered, the narrowest first, as rules write them. Empty: only exactly as it is."""


class Redirect(Value):
    """One redirection of a command: what it opens in the place of one of its streams."""

    operator: str
    """As it is written, with the number of the descriptor where there is one: `>`, `2>>`."""
    target: str | None
    """The file, the descriptor, or the end mark of a here-document. None: only known when it runs."""
    access: Literal["none", "read", "null", "write", "net"]
    """Kind of the target: nothing, a file, the null device, or a connection."""


class Meaning(Value):
    """One command that would run, as far as it is known before it does."""

    words: tuple[str | None, ...]
    """Its words after expansion. None: only known when it runs. Empty: it only redirects or sets variables."""
    assignments: dict[str, str | None] = Field(default_factory=dict)
    """Variables that are set for it, or by it where it has no words. None: the value is only known when it runs."""
    redirects: tuple[Redirect, ...] = ()
    """Its redirections, in their order."""
    risks: tuple[str, ...] = ()
    """Ids of the risks of this command, each once."""
    missing: bool = False
    """True if its program was looked for and not found."""
    wraps: bool = False
    """True if it is a wrapper, which only runs the command after it."""
    program: str | None = None
    """Absolute path of its program. None: not found, built into the shell, or not known."""
    through: tuple[str, ...] = ()
    """The wrappers around it, outermost first."""
    expanded: tuple[str, ...] = ()
    """Notes about expansions, like `*.py: 12 files`."""
    background: bool = False
    """True if it runs in the background of the shell."""
    unknown: str | None = None
    """Why the commands that it runs in turn are not known. None: they are."""


PlaceKind = Literal["file", "directory", "other", "process", "own", "above-own"]


class Place(Value):
    """The real target of a path in a command, if it differs from what the path says."""

    command: int
    """Index of the command that it belongs to, from 0."""
    path: str
    """Its real path, links followed."""
    kind: PlaceKind
    """`other`: a device, socket or FIFO. `process`: a file about a process. `own`: a file of whisper_tui."""


class Repository(Value):
    """The git repository that a command is about, in absolute paths."""

    work_tree: str
    git_dir: str
    common_dir: str
    """Directory of its configuration and objects; differs from `git_dir` in a linked work tree."""
    modules: bool = False
    """True if it has, or could have, submodules, whose configuration git reads as well."""


class RunCode(Value):
    """Code that a command runs and that is no part of it: a script, a task, or a program of the project."""

    name: str
    """As a person would call it: `./deploy.sh`, `npm run build`."""
    path: str | None = None
    """The file that holds it. None: there is none, or it is not known."""
    digest: str | None = None
    """First digits of the SHA-256 of that file."""
    not_inspected: str = ""
    """Why its commands were not read, as a clause. Empty: they were, and their risks are among those of the call."""


class OwnShell(Value):
    """The agent's own shell, in which a command runs if a human approves it (decision 32)."""

    program: str = ""
    """Absolute path of the shell. Empty: bash, as whom the command was read."""
    profile: str = ""
    """The file of functions and aliases that it reads first. Empty: it reads none."""
    defines: dict[str, str] = Field(default_factory=dict)
    """The words of the command that the profile defines, each with the beginning of the definition."""
    only_there: tuple[str, ...] = ()
    """Those of them that are no programs, so that the command needs the profile."""


class OutsideProgram(Value):
    """A program that lies outside of the directories from which the sandbox executes, and of the workspace."""

    path: str
    """As it was found."""
    real: str
    """With links resolved."""
    runs_alone: bool = False
    """True if it is a binary that only root and the user can change, so that opening its file is enough."""


class Resolved(Value):
    """Programs, files and values that the words of a command mean on this machine at this moment."""

    program: str | None = None
    """Absolute path of the program that would start. None: not found."""
    cwd: str | None = None
    """The working directory with links resolved. None: it does not exist."""
    problem: str | None = None
    """The reason why it cannot start, in one sentence."""
    git_is_neutral: bool = False
    """True if git's configuration here is known to run nothing by itself. False: it may, or nobody has looked."""
    repository: Repository | None = None
    """The repository around the working directory, and around every other into which the text moves.

    None: there is none, it is not known well enough, or the text may lead git to another one.
    """
    places: tuple[Place, ...] = ()
    """Paths in the text that lead elsewhere than they say."""
    helpers: tuple[str, ...] = ()
    """Programs that those of the command would start in turn, as they are found in PATH."""
    shell: str | None = None
    """The shell that reads the text, links followed: `bash`, `dash`. None: no shell, or not resolved."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Values of the variables that the text uses, as far as they are known and no secret."""
    commands: tuple[Meaning, ...] = ()
    """The commands that will run, with their words expanded as far as known."""
    more: int = 0
    """Number of harmless commands that are left out of `commands`."""
    unread: str | None = None
    """Why a part of the text could not be parsed. None: all of it was."""
    files: dict[str, str] = Field(default_factory=dict)
    """Identity of the files behind its programs and scripts, so that a replaced file shows."""
    sensitive: dict[str, str] = Field(default_factory=dict)
    """Files that it may write and that decide what runs later, or who may approve: each path with its kind."""
    contents: dict[str, str] = Field(default_factory=dict)
    """Digests of its scripts by path: a file can change without a change of its times."""
    code: tuple[RunCode, ...] = ()
    """Code that it runs and that is no part of it."""
    edits: tuple[EditedFile, ...] = ()
    """The files that an edit changes."""
    own_shell: OwnShell | None = None
    """The shell in which it runs if a human approves it. None: the shell that it was read as, without a profile."""
    literal: str | None = None
    """Its commands in literal words, with its expansions as they are now. None: it has none, or one is uncertain."""
    outside: tuple[OutsideProgram, ...] = ()
    """Programs of its commands that the sandbox does not execute because of their directory."""
    literal_places: tuple[Place, ...] = ()
    """Paths in `literal` that lead elsewhere than they say."""

    def outside_of(self, sandbox: Sandbox) -> tuple[OutsideProgram, ...]:
        """Return the programs of the command that lie in none of the directories from which a sandbox executes."""
        directories = tuple(path.rstrip("/") + "/" for path in sandbox.execute)
        return tuple(
            each for each in self.outside if not any(p.startswith(directories) for p in (each.path, each.real))
        )

    def opened_in(self, sandbox: Sandbox) -> Sandbox:
        """Return a sandbox that also executes those of them for which their own file is enough."""
        alone = tuple(each.path for each in self.outside_of(sandbox) if each.runs_alone)
        return sandbox.model_copy(update={"programs": alone}) if alone else sandbox

    @property
    def not_inspected(self) -> tuple[RunCode, ...]:
        """The code that nobody has read: where there is any, a command without a risk is not harmless."""
        return tuple(code for code in self.code if code.not_inspected)
