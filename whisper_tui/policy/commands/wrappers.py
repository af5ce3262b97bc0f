"""Programs that run the rest of their words, or the words after a subcommand; and shells, with the text that they run."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from whisper_tui.policy.commands.argv import ParsedOptions, Words, parse_options, program_name
from whisper_tui.programs.entries import ProgramEntry, Wrapping, entry_of


class Wrapper(NamedTuple):
    """A program that runs the rest of its words: its options, and how the command is found behind them."""

    entry: ProgramEntry
    ways: Wrapping


class Runner(NamedTuple):
    """A program with subcommands that run the words after them."""

    verbs: Mapping[str, Wrapper]
    """The wrapper of each subcommand, which is one word or two with a blank between; `""` is the program itself."""
    entry: ProgramEntry
    """The program, whose options may stand before the subcommand."""


@cache
def wrapper_of(name: str) -> Wrapper | None:
    """Return how a program runs the rest of its words. None: it does not."""
    entry = entry_of(name)
    return None if entry.versions or entry.wraps is None else Wrapper(entry, entry.wraps)


@cache
def runner_of(name: str) -> Runner | None:
    """Return how a program or its subcommands run the words of a package or of an environment. None: none does."""
    entry = entry_of(name)
    below: dict[tuple[str, ...], ProgramEntry] = {(word,): sub for word, sub in entry.commands.items()}
    below |= {(word, last): sub for word, each in entry.commands.items() for last, sub in each.commands.items()}
    if entry.versions:
        below[()] = entry
    verbs = {" ".join(words): Wrapper(sub, sub.wraps) for words, sub in below.items() if sub.wraps is not None}
    return Runner(verbs, entry) if verbs else None


BUILTINS = frozenset(
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait".split()
)


_SETTING = frozenset(
    "read declare typeset local unset let mapfile readarray getopts coproc eval source . trap wait printf".split()
)
_BY_OPTION = {"printf": "-v", "wait": "-p"}
"""Builtins of these that set a variable only with an option."""

SETS_INSIDE = re.compile(r"\$\{[A-Za-z_]\w*(?:\[[^]]*\])?:?=|\(\(|\[\[|\{[A-Za-z_]\w*\}[<>]")
"""Expansions, arithmetic, matches and redirections that set a variable."""

SET_BY_THE_SHELL = re.compile(
    r"BASH_?\w*|COMP_\w+|COPROC|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HIST\w+|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|"
    r"MAPFILE|OLDPWD|OPTARG|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|RANDOM|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_"
)
"""Variables to which bash itself gives a value."""


def may_set_variables(argv: Words) -> bool:
    """True if a command may set any variable of its shell, so that no value before it is certain behind it."""
    name, words = _builtin(argv)
    option = _BY_OPTION.get(name)
    if option is not None:
        return any(word is None or word.startswith(option) for word in words)
    return name in _SETTING


def sets_variables(argv: Words) -> bool:
    """True if a command may set variables of its shell, those that its words name among them."""
    return _builtin(argv)[0] in {"export", "readonly"} or may_set_variables(argv)


def _builtin(argv: Words) -> tuple[str, Words]:
    """Return the name behind `builtin` and `command`, and its words. Empty: it is only known when it runs."""
    at = next((at for at, word in enumerate(argv) if word not in {"builtin", "command"}), len(argv))
    word = argv[at] if at < len(argv) else None
    return ("", ()) if word is None else (program_name(word), argv[at + 1 :])


_VARIABLES = frozenset(
    "BASH_ENV ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND IFS CDPATH GLOBIGNORE SHELL "
    "PAGER MANPAGER EDITOR VISUAL BROWSER FCEDIT SUDO_ASKPASS SSH_ASKPASS "
    "HOME TMPDIR PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS "
    "JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS GOFLAGS GOROOT GOTOOLDIR GOPROXY RUSTC_WRAPPER RUSTC "
    "RUSTFLAGS CARGO_HOME MAKEFLAGS MAKEFILES CC CXX CPP LD AR RIPGREP_CONFIG_PATH GREP_OPTIONS TAR_OPTIONS "
    "RSYNC_RSH CVS_RSH GZIP BZIP2 UNZIP ZIPINFO P7ZIP MORE MAGIC XZ_OPT XZ_DEFAULTS ZSTD_CLEVEL HGRCPATH "
    "BZIP TAPE WORDLIST GNUMAKEFLAGS SYSTEMD_LESS GNUPGHOME "
    "EMACSLOADPATH VIMINIT EXINIT GVIMINIT INPUTRC TERMINFO TERMCAP TERMINFO_DIRS LOCPATH GCONV_PATH NLSPATH HOSTALIASES RES_OPTIONS MALLOC_TRACE "
    "OPENSSL_CONF OPENSSL_MODULES SSL_CERT_FILE SSL_CERT_DIR CURL_HOME CURL_CA_BUNDLE WGETRC AWKLIBPATH PHPRC "
    "PHP_INI_SCAN_DIR LUA_INIT LUA_CPATH JULIA_LOAD_PATH R_PROFILE R_PROFILE_USER R_ENVIRON ZDOTDIR FPATH "
    "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY AWS_PROFILE AWS_CONFIG_FILE KUBECONFIG "
    "DOCKER_HOST DOCKER_CONFIG".split()
)

_VARIABLE_PATTERNS = re.compile(
    r"(?:LD_|DYLD_|GIT_|BASH_FUNC_|PYTHON|PIP_|UV_|npm_config_|NPM_CONFIG_|YARN_|NODE_|PERL5|RUBY|GEM_|BUNDLE_|LUA_|"
    r"GCC_|CARGO_|RUSTUP_|TF_CLI_|ANSIBLE_|XDG_CONFIG_|ASAN_|GTK_|QT_|LESS|CCACHE_|DISTCC_|CLANG_|DBUS_|DEBUGINFOD_|"
    r"DOTNET_STARTUP|DOTNET_ROOT|CORECLR_|ERL_).*"
    r"|.*(?:PATH|PAGER|EDITOR|_OPTIONS|_OPTS|OPT|_CONFIG|_COMMAND|_HOOK|_WRAPPER|_SHELL|_ASKPASS|RC|LOG_?FILE|HISTFILE)\Z",
    re.DOTALL,
)

_HARMLESS_VARIABLES = frozenset({"WHISPER_TUI", "WHISPER_TUI_CALL_ID", "ASIMI_CLI"})
"""Variables with which whisper_tui marks the commands that it starts."""

_NEEDED_VARIABLES = frozenset({"PATH", "HOME", "SHELL", "TMPDIR", "INFOPATH", "MANPATH"})
"""Variables of the session's environment without which ordinary commands fail."""

_INHERITED_THREATS = re.compile(
    r"(?:LD_|DYLD_|BASH_FUNC_|GIT_(?!AUTHOR_|COMMITTER_)).*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|CDPATH|"
    r"GLOBIGNORE|IFS|LESSOPEN|LESSCLOSE|PERL5OPT|PERL5DB|RUBYOPT|NODE_OPTIONS|PYTHON(?:PATH|STARTUP|HOME|INSPECT|"
    r"BREAKPOINT|WARNINGS|USERBASE)|RIPGREP_CONFIG_PATH|GREP_OPTIONS|TAR_OPTIONS|GCONV_PATH|LOCPATH|JAVA_TOOL_OPTIONS|"
    r"_JAVA_OPTIONS|JDK_JAVA_OPTIONS|MAKEFLAGS|MAKEFILES|LUA_INIT.*|AWKLIBPATH|AWKPATH|OPENSSL_CONF|MALLOC_TRACE|"
    r".*PAGER|EDITOR|VISUAL|BROWSER",
    re.DOTALL,
)


def changes_what_runs(name: str) -> bool:
    """True if setting this variable can make a command do something other than its words say."""
    return name not in _HARMLESS_VARIABLES and (name in _VARIABLES or _VARIABLE_PATTERNS.fullmatch(name) is not None)


def adds_variables(environment: Iterable[str]) -> bool:
    """True if a call brings variables of its own, and not only those that mark what agents start."""
    return not _HARMLESS_VARIABLES.issuperset(environment)


def is_withheld(name: str) -> bool:
    """True if a command that runs without being asked does not get this variable of its session."""
    return name not in _NEEDED_VARIABLES and _INHERITED_THREATS.fullmatch(name) is not None


def shell_options(argv: Words) -> ParsedOptions | None:
    """Parse the options of a shell before its script. Returns None if one is unknown or not literal."""
    # `bash +x` switches an option off: the same letters, with a plus
    words = tuple("-" + word[1:] if word and word.startswith("+") and len(word) > 1 else word for word in argv)
    return parse_options(words, 1, entry_of("bash"))


RUNS_FILE = "it runs a script from a file"
RUNS_INPUT = "it runs a script from its input"


class StandardInput(NamedTuple):
    """The standard input of a command."""

    text: str | None = None
    """Its text, if the command contains it."""
    has_input: bool = False
    """True if there is any input: a pipe, a file, a here-document."""


def shell_text(argv: tuple[str | None, ...], given: StandardInput) -> tuple[str | None, str]:
    """Return the script that a shell would run, or None and the reason why it is not known."""
    parsed = shell_options(argv)
    if parsed is None:
        return None, "unknown options of the shell hide what it runs"
    operands = argv[parsed.rest :]
    # a single dash ends the options of a shell, as `--` does
    if operands[:1] == ("-",):
        operands = operands[1:]
    if parsed.has("-c", "--command"):
        if not operands or operands[0] is None:
            return None, "the shell's script is not known before it runs"
        return operands[0], ""
    if operands and not parsed.has("-s"):
        return None, RUNS_FILE
    if given.text is not None:
        return given.text, ""
    if given.has_input:
        return None, RUNS_INPUT
    return None, "it starts an interactive shell"
