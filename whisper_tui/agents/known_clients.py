"""The supported agent clients, and the one table of the deadlines of their hooks.

A new client is a module `agents/<client>.py` with a `PROFILE`, and one row here. The program of the hook imports this
table with every command that an agent runs, so it is standard library only, and not even `typing` is loaded.
"""

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whisper_tui.agents.profile import ClientProfile


class KnownClient:
    """One row: the facts about a client that programs need before they load its profile."""

    __slots__ = (
        "deadline_s",
        "installs",
        "pid_variable",
        "project_variable",
        "rule_formats",
        "session_variable",
        "shell_variable",
        "title",
    )

    def __init__(
        self,
        title: str,
        deadline_s: float,
        *,
        installs: bool = True,
        rule_formats: tuple[str, ...] = (),
        shell_variable: str = "",
        pid_variable: str = "",
        project_variable: str = "",
        session_variable: str = "",
    ) -> None:
        """`title`: its name for humans. `deadline_s`: seconds after which a hook without another deadline denies."""
        self.title = title
        # A client runs the command when its hook is late. So the deadline is shorter than the client's timeout, with a
        # margin for a slow answer.
        self.deadline_s = deadline_s
        self.installs = installs
        self.rule_formats = rule_formats
        """The formats of its rules that `rules import` reads."""
        self.shell_variable = shell_variable
        """The variable that the client sets to 1 for the commands of its shell tool."""
        self.pid_variable = pid_variable
        """The variable in which hooks find the client's process id."""
        self.project_variable = project_variable
        """The variable in which MCP servers find the client's workspace."""
        self.session_variable = session_variable
        """The variable in which commands of its shell tool find the client's session, as its hook names it."""


OUR_SESSION = "WHISPER_TUI_SESSION"
"""The variable in which the plugin of OpenCode and Kilo names their session."""

# Measured with the real clients, whose versions the tests pin (decision 27).
KNOWN: dict[str, KnownClient] = {
    "claude": KnownClient(
        "Claude Code",
        570.0,
        rule_formats=("claude",),
        shell_variable="CLAUDECODE",
        pid_variable="CLAUDE_PID",
        project_variable="CLAUDE_PROJECT_DIR",
        session_variable="CLAUDE_CODE_SESSION_ID",
    ),
    "codex": KnownClient("Codex", 570.0, rule_formats=("codex",), shell_variable="CODEX_CI"),
    "gemini": KnownClient("Gemini CLI", 50.0, rule_formats=("gemini", "lists"), shell_variable="GEMINI_CLI"),
    "opencode": KnownClient("OpenCode", 3600.0, shell_variable="OPENCODE", session_variable=OUR_SESSION),
    "copilot": KnownClient("GitHub Copilot CLI", 25.0, shell_variable="COPILOT_CLI"),
    "qwen": KnownClient("Qwen Code", 50.0, shell_variable="QWEN_CODE"),
    "kimi": KnownClient("Kimi Code", 25.0),
    "kilo": KnownClient("Kilo", 3600.0, shell_variable="KILO", session_variable=OUR_SESSION),
    "crush": KnownClient("Crush", 25.0, installs=False),
}
"""By the client's name on the command line, which is also the prefix of its name in MCP."""

INSTALLABLE = tuple(name for name, known in KNOWN.items() if known.installs)
"""The clients that `install`, `uninstall` and `doctor` know."""


SHELL_VARIABLES = tuple(known.shell_variable for known in KNOWN.values() if known.shell_variable)


def profile_of(name: str) -> "ClientProfile":
    """The profile of a client by its name on the command line. Raises `InvalidRequest`."""
    if name not in KNOWN:
        from whisper_tui.model.errors import InvalidRequest

        raise InvalidRequest(f"there is no client {name!r}", hint=f"There are {', '.join(KNOWN)}")
    if name == "crush":
        return _crush()
    from importlib import import_module

    # Kilo takes the plugin of OpenCode.
    module, variable = ("opencode", "KILO") if name == "kilo" else (name, "PROFILE")
    profile: ClientProfile = getattr(import_module(f"whisper_tui.agents.{module}"), variable)
    return profile


@cache
def _crush() -> "ClientProfile":
    """The profile of a client of which only the hook is known."""
    from whisper_tui.agents.hook_formats import CrushHook
    from whisper_tui.agents.profile import ClientProfile

    return ClientProfile(name="crush", title=KNOWN["crush"].title, hook=CrushHook(), hook_timeout_s=30.0)


def profiles() -> "Iterator[ClientProfile]":
    """The profiles of all clients."""
    return map(profile_of, KNOWN)


def profile_behind(client_name: str) -> "ClientProfile | None":
    """The profile of the client with this name in its MCP handshake or in a session. None: it is unknown."""
    lower = client_name.lower()
    return next((profile_of(name) for name in KNOWN if lower.startswith(name)), None)
