"""Programs that run the rest of their words, or the words after a subcommand; and shells, with the text that they run."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from whisper_tui.policy.commands.argv import KnownOptions, Words, known_options, parse_options, program_name

_NONE = KnownOptions()


@dataclass(frozen=True)
class Wrapper:
    """How the command behind a wrapper is found."""

    options: KnownOptions = _NONE
    operands: int = 0
    """Words of its own between the options and the command."""
    assignments: bool = False
    """True if `NAME=value` may stand before the command."""
    itself: tuple[str, ...] = ()
    """Options with which it runs nothing."""
    text: tuple[str, ...] = ()
    """Options whose value is shell text, which it runs instead of words."""
    joins: bool = False
    """True if a shell reads the rest, joined by blanks."""
    joining: tuple[str, ...] = ()
    """Options that make a shell read the rest."""
    module: tuple[str, ...] = ()
    """Options that make the rest a Python module and its arguments."""
    dashes: bool = False
    """True if `--` may stand between its operands and the command."""
    only_dashes: bool = False
    """True if the command begins after `--`, whatever stands before it."""


_SUDO = known_options(
    "AbBEHikKlnNPSsVv",
    "CDghpRrTtUu",
    "askpass background bell preserve-env set-home login remove-timestamp reset-timestamp list non-interactive "
    "no-update preserve-groups stdin shell version validate help",
    "close-from chdir group host prompt chroot role command-timeout type other-user user",
)
_NAMESPACES = known_options(
    "mnupUrfcCTiS", "SGRw",
    "mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto keep-caps kill-child "
    "mount-proc",
    "setuid setgid root wd propagation setgroups map-user map-group map-users map-groups boottime monotonic",
)  # fmt: skip

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(_SUDO, assignments=True, itself=("-l", "--list", "-V", "--version", "--validate", "--help")),
    "doas": Wrapper(known_options("nsL", "aCu"), itself=("-L", "-C")),
    "pkexec": Wrapper(known_options("", "", "disable-internal-agent keep-cwd version help", "user")),
    "gosu": Wrapper(operands=1),
    "su-exec": Wrapper(operands=1),
    "nice": Wrapper(known_options("", "n", "", "adjustment")),
    "ionice": Wrapper(known_options("t", "cnpPu", "ignore", "class classdata pid pgid uid"), itself=("-p", "-P", "-u")),
    "nohup": Wrapper(),
    "timeout": Wrapper(known_options("vfp", "ks", "foreground preserve-status verbose", "kill-after signal"), operands=1),
    "stdbuf": Wrapper(known_options("", "ioe", "", "input output error")),
    "setsid": Wrapper(known_options("cfw", "", "ctty fork wait")),
    "time": Wrapper(known_options("apqvV", "of", "append portability quiet verbose", "output format")),
    "command": Wrapper(known_options("pvV"), itself=("-v", "-V")),
    "builtin": Wrapper(),
    "exec": Wrapper(known_options("cl", "a")),
    "chrt": Wrapper(
        known_options("abdfiormvR", "DPTp", "all-tasks batch deadline fifo idle other rr max verbose reset-on-fork",
              "sched-runtime sched-period sched-deadline pid"),
        operands=1, itself=("-p", "--pid", "-m", "--max"),
    ),
    "taskset": Wrapper(known_options("ac", "p", "all-tasks cpu-list", "pid"), operands=1, itself=("-p", "--pid")),
    "setpriv": Wrapper(
        known_options("d", "", "dump nnp no-new-privs clear-groups keep-groups init-groups list-caps reset-env",
              "ambient-caps inh-caps bounding-set reuid regid ruid euid rgid egid groups securebits pdeathsig "
              "selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter ptracer"),
    ),
    "chroot": Wrapper(known_options("", "", "skip-chdir", "groups userspec"), operands=1),
    "unshare": Wrapper(_NAMESPACES),
    "nsenter": Wrapper(known_options("amunipUCTFZre", "tSGw", "all mount uts ipc net pid user cgroup time no-fork env "
                             "follow-context preserve-credentials root wd", "target setuid setgid wdns")),
    "strace": Wrapper(known_options("cCdfFhiknqrtTvVwxyYzZ", "aEeIoOpPsSuUXb", "follow-forks syscall-times summary-only "
                            "summary instruction-pointer stack-traces relative-timestamps absolute-timestamps "
                            "no-abbrev decode-fds decode-pids quiet successful-only failed-only seccomp-bpf",
                            "trace signal status output string-limit env attach user columns interruptible")),
    "ltrace": Wrapper(known_options("bcCfhiLrStTV", "aADeFlnopsuwxX", "", "output config library")),
    "flock": Wrapper(known_options("sxenuoFv", "wEc", "shared exclusive nonblock unlock close no-fork verbose",
                           "timeout conflict-exit-code command"), operands=1, text=("-c", "--command")),
    "watch": Wrapper(known_options("bcCdegprtwx", "nqs", "beep color no-color errexit chgexit precise no-rerun no-title "
                           "no-wrap exec differences follow", "interval equexit shotsdir"), joins=True),
    "busybox": Wrapper(itself=("--list", "--help", "--install")),
    "toybox": Wrapper(),
    "setarch": Wrapper(known_options("BFILRSTXZv3", "p", "32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize "
                             "whole-seconds sticky-timeouts read-implies-exec mmap-page-zero 3gb verbose")),
    "linux32": Wrapper(known_options("BFILRSTXZv3")),
    "linux64": Wrapper(known_options("BFILRSTXZv3")),
    "numactl": Wrapper(known_options("als", "iNCmpP", "all localalloc show", "interleave cpunodebind physcpubind membind preferred")),
    "prlimit": Wrapper(known_options("v", "p", "verbose raw noheadings as core cpu data fsize locks memlock msgqueue nice nofile "
                             "nproc rss rtprio rttime sigpending stack", "pid output"), itself=("-p", "--pid")),
    "systemd-run": Wrapper(known_options("dGPqrtS", "EHMpu", "user system scope slice-inherit remain-after-exit send-sighup "
                                 "pty pipe quiet collect shell wait no-block no-ask-password same-dir",
                                 "unit property description slice service-type uid gid nice working-directory setenv "
                                 "on-active on-boot on-calendar")),
    "firejail": Wrapper(),
    "bwrap": Wrapper(known_options("", "", "unshare-all unshare-user unshare-ipc unshare-pid unshare-net unshare-uts "
                           "unshare-cgroup share-net new-session die-with-parent as-pid-1 clearenv",
                           "chdir uid gid hostname unsetenv proc dev tmpfs mqueue dir")),
    "proot": Wrapper(known_options("0v", "rbmqwkiRS", "", "rootfs bind mount qemu cwd kernel-release change-id")),
    "entr": Wrapper(known_options("acdnprsxz")),
    "fakeroot": Wrapper(known_options("huv", "lisb", "unknown-is-real", "lib faked")),
    "faketime": Wrapper(known_options("mf", "p"), operands=1),
    "valgrind": Wrapper(known_options("qv", "", "leak-check quiet verbose", "tool log-file")),
    "dbus-run-session": Wrapper(),
    "xvfb-run": Wrapper(known_options("al", "efnpsw", "auto-servernum listen-tcp", "error-file auth-file server-num server-args")),
    "caffeinate": Wrapper(known_options("dimsu", "tw")),
    "chronic": Wrapper(known_options("ve")),
    "unbuffer": Wrapper(known_options("p")),
    "rlwrap": Wrapper(known_options("acimnrvA", "bfHs")),
    "torsocks": Wrapper(known_options("iq")),
    "proxychains": Wrapper(known_options("q", "f")),
    "proxychains4": Wrapper(known_options("q", "f")),
    "cpulimit": Wrapper(known_options("ziv", "lpe", "", "limit")),
    "hyperfine": Wrapper(known_options("iN", "wmMrps", "ignore-failure", "warmup min-runs max-runs runs prepare shell"), joins=True),
    "catchsegv": Wrapper(),
    "xargs": Wrapper(
        known_options("0prtxoile", "adEILnPs", "null interactive no-run-if-empty verbose exit open-tty show-limits replace eof max-lines",
              "arg-file delimiter max-args max-procs max-chars process-slot-var"),
    ),
    "ssh": Wrapper(known_options("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw"), operands=1, joins=True),
    "mosh": Wrapper(known_options("46an", "p", "", "ssh port server"), operands=1),
    "script": Wrapper(known_options("aefqV", "cBEImOoTt", "append flush return quiet force version",
                            "command log-in log-out log-io log-timing echo logging-format output-limit"),
                      operands=1, text=("-c", "--command")),
    "su": Wrapper(known_options("flmpP", "cgGsTw", "login preserve-environment pty fast",
                        "command session-command group supp-group shell whitelist-environment"),
                  text=("-c", "--command", "--session-command"), operands=99),
    "runuser": Wrapper(known_options("flmpP", "cgGsuTw", "login preserve-environment pty fast",
                             "command session-command group supp-group shell user whitelist-environment"),
                       text=("-c", "--command", "--session-command")),
    "env": Wrapper(known_options("iv0", "uCSa", "ignore-environment null debug list-signal-handling default-signal "
                         "ignore-signal block-signal", "unset chdir split-string argv0"), assignments=True),
    "cmd": Wrapper(),
    "summon": Wrapper(known_options("V", "fDpe", "ignore-all version up", "file subs provider environment yaml ignore")),
    "envconsul": Wrapper(known_options("", "", "once pristine sanitize upcase", "config consul-addr prefix secret vault-addr "
                               "vault-token log-level kill-signal service-query")),
    "ssh-agent": Wrapper(known_options("csdDkT", "aEtPO")),
    "sshpass": Wrapper(known_options("ev", "fdpP")),
    "autossh": Wrapper(known_options("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWwM"), operands=1, joins=True),
    "setuidgid": Wrapper(operands=1),
    "envuidgid": Wrapper(operands=1),
    "envdir": Wrapper(operands=1),
    "chpst": Wrapper(known_options("vVP012", "uUbe/nlLmdofpcrt")),
    "softlimit": Wrapper(known_options("", "adsmolpfcrt")),
    "cgexec": Wrapper(known_options("", "g", "sticky")),
    "daemonize": Wrapper(known_options("av", "cepoluE")),
    "eatmydata": Wrapper(),
    "fakechroot": Wrapper(known_options("", "e", "use-system-libs", "environment config-dir elfloader")),
    "datefudge": Wrapper(known_options("s", "", "static"), operands=1),
    "torify": Wrapper(),
    "distcc": Wrapper(),
    "sccache": Wrapper(),
    "heaptrack": Wrapper(known_options("dr", "op", "debug record-only raw", "output pid")),
    "gdbserver": Wrapper(known_options("", "", "once multi wrapper disable-randomization"), operands=1),
    "watchexec": Wrapper(known_options("rncdp1vqN", "wieofsWEj", "restart clear no-vcs-ignore no-project-ignore once postpone "
                               "notify no-shell", "watch exts ignore filter shell signal debounce delay-run workdir")),
    "dtach": Wrapper(known_options("", "ANnce", "", "")),
    "abduco": Wrapper(known_options("", "cnAe"), operands=0),
    "coreutils": Wrapper(),
    "run0": Wrapper(known_options("", "ugDE", "no-ask-password slice-inherit pipe pty", "unit user group nice chdir setenv slice "
                          "property background description")),
    "flatpak-spawn": Wrapper(known_options("v", "", "verbose host clear-env watch-bus latest-version no-network sandbox", "forward-fd "
                             "env unset-env directory env-fd app-path usr-path sandbox-expose")),
    "lxc-attach": Wrapper(known_options("ers", "nPvugofRL", "elevated-privileges clear-env keep-env remount-sys-proc quiet",
                                "name lxcpath arch namespaces set-var keep-var uid gid logfile logpriority rcfile")),
    "lxc-execute": Wrapper(known_options("dq", "nPfsugol", "daemon quiet", "name lxcpath rcfile define uid gid logfile logpriority")),
    "distrobox-enter": Wrapper(only_dashes=True),
    "nsjail": Wrapper(only_dashes=True),
    "pdsh": Wrapper(known_options("behLNqSVdvk", "wxlutfRMCgaXFiP"), joins=True),
    "dsh": Wrapper(known_options("aciMq", "mgfrnNF", "all concurrent-shell wait-shell show-machine-names verbose quiet",
                         "machine group file remoteshell forklimit"), joins=True),
    "clush": Wrapper(known_options("abBcdGLNqrSv", "wxglmofptuX", "all diff nostdin quiet verbose",
                           "user options fanout connect_timeout command_timeout"), joins=True),
    "pssh": Wrapper(known_options("iAvPI", "hHlpotexO", "inline askpass verbose print", "hosts host user par outdir timeout"), joins=True),
    "parallel-ssh": Wrapper(known_options("iAvPI", "hHlpotexO", "inline askpass verbose print", "hosts host user par outdir timeout"),
                            joins=True),
    "sg": Wrapper(known_options("", "c"), operands=99, text=("-c",)),
    "choom": Wrapper(known_options("", "np", "", "adjust pid"), itself=("-p", "--pid")),
    "aa-exec": Wrapper(known_options("dvi", "pn", "debug verbose immediate", "profile namespace")),
    "multitime": Wrapper(known_options("flqs", "INinor")),
    "grc": Wrapper(known_options("es", "c", "stderr stdout pty", "config colour")),
    "setlock": Wrapper(known_options("nNxX"), operands=1),
    "openvt": Wrapper(known_options("eflsuvw", "c", "exec force login switch user verbose wait", "console"), dashes=True),
    "gsudo": Wrapper(known_options("ndwkhs", "iu", "new direct wait keepShell", "integrity user")),
}  # fmt: skip
"""By program name, without a directory."""

OWN_FILES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "sudo doas pkexec gosu su-exec nice ionice nohup timeout stdbuf setsid command builtin exec chrt taskset setpriv "
        "unshare chroot watch busybox toybox coreutils setarch arch linux32 linux64 numactl prlimit caffeinate chronic "
        "unbuffer eatmydata torsocks torify xargs ssh mosh su runuser sg env setuidgid envuidgid envdir eval find fd "
        "fdfind gfind flock".split(),
        (),
    ),
    "time": ("-o", "--output"),
    "strace": ("-o", "--output"),
    "ltrace": ("-o", "--output"),
    "valgrind": ("--log-file", "--xml-file"),
    "fakeroot": ("-s",),
    "xvfb-run": ("-e", "--error-file", "-f", "--auth-file"),
    "daemonize": ("-e", "-o", "-p", "-l"),
    "script": ("-T", "--log-timing", "-O", "--log-out", "-I", "--log-in", "-B", "--log-io"),
    "perf": ("-o", "--output"),
    "heaptrack": ("-o", "--output"),
}
"""The options of wrappers that name files which they write themselves. A wrapper that is not here may write others."""

OWN_OPERANDS = frozenset({"flock", "script"})
"""Wrappers whose first operand is a file that they open for writing."""

MORE_FILES = frozenset({"daemonize", "xvfb-run", "perf", "heaptrack"})
"""Wrappers of `OWN_FILES` that write more files than these options name."""

ALLOW_LOOKS_THROUGH = frozenset({"timeout", "nice", "nohup", "stdbuf"})
"""The only wrappers through which an allow rule for the inner command still holds."""

FOREIGN_SHELLS = frozenset("nu xonsh elvish pwsh powershell ion osh ysh oil murex".split())
"""Shells with a syntax of their own. Their text is searched as bash text for commands to deny."""

SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish rbash yash csh tcsh pdksh oksh posh".split())


@dataclass(frozen=True)
class Runner:
    """A program with subcommands that run the words after them."""

    verbs: dict[str, Wrapper]
    """The wrapper of each subcommand, which is one word or two with a blank between."""
    options: KnownOptions = _NONE
    """Options that may stand before the subcommand."""
    versions: bool = False
    """True if the command may carry a version: `ruff@latest`."""


_UV_INDEX = (
    "index default-index index-url extra-index-url find-links index-strategy keyring-provider resolution prerelease "
    "fork-strategy config-setting no-build-isolation-package exclude-newer link-mode reinstall-package "
    "upgrade-package refresh-package no-build-package no-binary-package python env-file with with-editable "
    "with-requirements color cache-dir project directory config-file allow-insecure-host python-preference "
    "python-platform extra no-extra group no-group only-group package from torch-backend"
)
_UV_FLAGS = (
    "quiet verbose no-cache offline no-progress native-tls no-config no-python-downloads preview managed-python "
    "no-managed-python all-extras dev no-dev only-dev all-groups no-default-groups no-editable exact inexact "
    "no-env-file isolated active no-active no-sync locked frozen no-project all-packages reinstall upgrade refresh "
    "no-build no-binary no-sources no-build-isolation compile-bytecode no-index script gui-script"
)
_UV_GLOBAL = known_options(
    "qvn", "", "quiet verbose no-cache offline no-progress native-tls no-config no-python-downloads preview "
    "managed-python no-managed-python",
    "cache-dir color project directory config-file allow-insecure-host python-preference",
)  # fmt: skip
_UV = Wrapper(known_options("qvnUs", "pifPCw", _UV_FLAGS, _UV_INDEX), module=("-m", "--module"))
_NPX = Wrapper(
    known_options(
        "yq", "pcwn",
        "yes no quiet silent prefer-offline prefer-online offline ignore-existing no-install always-spawn workspaces "
        "include-workspace-root ignore-scripts verbose",
        "package call workspace shell node-arg cache userconfig registry loglevel prefix script-shell",
    ),
    text=("-c", "--call"),
)  # fmt: skip
_NPM_GLOBAL = known_options(
    "gsdqy", "Cwp", "silent quiet verbose global workspaces include-workspace-root offline prefer-offline yes no",
    "prefix workspace loglevel userconfig registry cache package script-shell",
)  # fmt: skip
_PNPM_GLOBAL = known_options("rwsc", "CF", "shell-mode recursive workspace-root silent stream parallel no-bail bail color no-color "
                     "aggregate-output", "dir filter filter-prod reporter loglevel resume-from")  # fmt: skip
_PNPM = Wrapper(known_options("rcsw", "C", "recursive parallel shell-mode no-bail report-summary reverse silent no-sort",
                      "resume-from package allow-build filter dir"), joining=("-c", "--shell-mode"))  # fmt: skip
_YARN = Wrapper(
    known_options("TBqs", "p", "top-level binaries-only quiet silent inspect inspect-brk require", "package cwd")
)
_BUN = Wrapper(
    known_options("b", "p", "bun silent verbose yes if-present watch hot no-install", "package filter cwd shell")
)
_CONDA = Wrapper(
    known_options("vd", "npreal", "dev debug-wrapper-scripts no-capture-output live-stream verbose quiet detach clean-env",
          "name prefix cwd root-prefix env attach label solver"),
)  # fmt: skip
_SECRETS = Wrapper(
    known_options(
        "djsnq", "pctm",
        "preserve-env no-fallback fallback-only fallback-readonly no-read-env no-cache no-masking no-session json "
        "server ec2-server ecs-server lazy debug stdout strict pristine watch overwrite no-exit-on-write-failure quiet "
        "reset redact shell",
        "env-file account project config token command name-transformer mount mount-format mount-template "
        "mount-max-reads fallback passphrase scope api-host config-dir region duration mfa-token prompt backend env "
        "path projectId domain file ref",
    ),
    text=("--command",),
)  # fmt: skip
_WITH_NAME = Wrapper(_SECRETS.options, operands=1, dashes=True)

RUNNERS: dict[str, Runner] = {
    "uv": Runner({"run": _UV, "tool run": _UV, "x": _UV}, _UV_GLOBAL, versions=True),
    "uvx": Runner({"": _UV}, versions=True),
    "pipx": Runner({"run": Wrapper(known_options("qv", "", "quiet verbose no-cache pypackages system-site-packages editable",
                                         "spec python index-url pip-args with"))},
                   known_options("qv", "", "quiet verbose global")),
    "poetry": Runner({"run": Wrapper()}, known_options("qvn", "PC", "quiet verbose no-interaction ansi no-ansi no-plugins no-cache",
                                               "project directory")),
    "pdm": Runner({"run": Wrapper(known_options("gsl", "pSk", "global site-packages list json recreate",
                                        "project env-file venv skip"))},
                  known_options("qvI", "c", "quiet verbose ignore-python no-cache", "config")),
    "hatch": Runner({"run": Wrapper(known_options("", "eix", "force-continue ignore-compat", "env include exclude filter"), joins=True),
                     "env run": Wrapper(known_options("", "eix", "force-continue ignore-compat", "env include exclude filter"), joins=True)},
                    known_options("vq", "ep", "verbose quiet color no-color interactive no-interactive",
                          "env project data-dir cache-dir config")),
    "rye": Runner({"run": Wrapper(known_options("lvq", "", "list verbose quiet", "pyproject"))}),
    "pipenv": Runner({"run": Wrapper(known_options("", "", "system"))},
                     known_options("qv", "", "bare clear quiet verbose site-packages", "python pypi-mirror")),
    "conda": Runner({"run": _CONDA}),
    "mamba": Runner({"run": _CONDA}),
    "micromamba": Runner({"run": _CONDA}, known_options("vqy", "r", "verbose quiet yes", "root-prefix")),
    "pixi": Runner({"run": Wrapper(known_options("vq", "e", "frozen locked no-install clean-env verbose quiet skip-deps as-is",
                                         "environment manifest-path")),
                    "exec": Wrapper(known_options("vq", "scw", "force-reinstall verbose quiet", "spec channel with"))}),
    "npx": Runner({"": _NPX}, versions=True),
    "npm": Runner({"exec": _NPX, "x": _NPX}, _NPM_GLOBAL, versions=True),
    "pnpm": Runner({"exec": _PNPM, "dlx": _PNPM}, _PNPM_GLOBAL, versions=True),
    "pnpx": Runner({"": _PNPM}, versions=True),
    "yarn": Runner({"exec": _YARN, "dlx": _YARN, "run": _YARN}, known_options("s", "", "silent", "cwd"), versions=True),
    "bunx": Runner({"": _BUN}, versions=True),
    "bun": Runner({"x": _BUN, "run": _BUN, "exec": Wrapper(joins=True)},
                  known_options("b", "", "bun silent watch hot", "cwd config filter"), versions=True),
    "bundle": Runner({"exec": Wrapper(known_options("V", "r", "keep-file-descriptors verbose no-color", "gemfile retry"))},
                     known_options("V", "r", "verbose no-color", "retry gemfile")),
    "bundler": Runner({"exec": Wrapper(known_options("V", "r", "keep-file-descriptors verbose no-color", "gemfile retry"))}),
    "composer": Runner({"exec": Wrapper(known_options("lnqv", "d", "list no-interaction quiet verbose no-plugins no-scripts",
                                              "working-dir"))}, known_options("nqv", "d", "no-interaction quiet", "working-dir")),
    "devbox": Runner({"run": Wrapper(known_options("lq", "ce", "list quiet pure omit-nix-env recompute all-projects",
                                           "config env env-file environment"))},
                     known_options("q", "", "quiet")),
    "direnv": Runner({"exec": Wrapper(operands=1, dashes=True)}),
    "asdf": Runner({"exec": Wrapper()}),
    "rbenv": Runner({"exec": Wrapper()}),
    "pyenv": Runner({"exec": Wrapper()}),
    "nodenv": Runner({"exec": Wrapper()}),
    "volta": Runner({"run": Wrapper(known_options("", "", "bundled-npm no-yarn no-pnpm", "node npm pnpm yarn env"))}),
    "fnm": Runner({"exec": Wrapper(known_options("", "", "", "using fnm-dir log-level arch"))}),
    "rustup": Runner({"run": Wrapper(known_options("", "", "install"), operands=1)}, known_options("vq", "", "verbose quiet")),
    "opam": Runner({"exec": Wrapper(known_options("y", "", "set-root set-switch yes", "switch root"))}),
    "stack": Runner({"exec": Wrapper(known_options("", "", "plain", "package"))}),
    "cabal": Runner({"exec": Wrapper(known_options("v", "w", "", "project-file builddir"))}),
    "guix": Runner({"environment": Wrapper(only_dashes=True), "shell": Wrapper(only_dashes=True)}),
    "op": Runner({"run": _SECRETS}, _SECRETS.options),
    "doppler": Runner({"run": _SECRETS}, _SECRETS.options),
    "infisical": Runner({"run": _SECRETS}, _SECRETS.options),
    "teller": Runner({"run": _SECRETS}, _SECRETS.options),
    "akeyless": Runner({"run": _SECRETS}, _SECRETS.options),
    "aws-vault": Runner({"exec": _WITH_NAME}, _SECRETS.options),
    "chamber": Runner({"exec": Wrapper(only_dashes=True)}),
    "saml2aws": Runner({"exec": Wrapper(known_options("", "a", "", "idp-account profile exec-profile"), dashes=True)}),
    "vault": Runner({"agent": Wrapper(only_dashes=True), "proxy": Wrapper(only_dashes=True)}),
    "sops": Runner({"exec-env": Wrapper(known_options("", "", "pristine same-process background", "user"), operands=1, joins=True),
                    "exec-file": Wrapper(known_options("", "", "no-fifo background", "user filename"), operands=1, joins=True)}),
    "foreman": Runner({"run": Wrapper(known_options("", "efdpt", "", "env procfile root"))}),
    "honcho": Runner({"run": Wrapper(known_options("", "efd", "", "env procfile app-root"))}, known_options("", "efd", "", "env procfile app-root")),
    "heroku": Runner({"run": Wrapper(known_options("x", "asre", "exit-code no-tty no-notify", "app size remote env type")),
                      "local:run": Wrapper(known_options("", "ep", "", "env port"))}),
    "toolbox": Runner({"run": Wrapper(known_options("y", "cdrl", "assumeyes verbose", "container distro release log-level"))},
                      known_options("yv", "l", "assumeyes verbose", "log-level")),
    "distrobox": Runner({"enter": Wrapper(only_dashes=True)}),
    "machinectl": Runner({"shell": Wrapper(known_options("q", "ME", "quiet no-ask-password", "machine host uid setenv"), operands=1)},
                         known_options("q", "MH", "quiet no-pager", "machine host")),
    "multipass": Runner({"exec": Wrapper(known_options("nv", "d", "no-map-working-directory verbose", "working-directory"),
                                         operands=1, dashes=True)}),
    "incus": Runner({"exec": Wrapper(known_options("tTq", "", "force-interactive force-noninteractive disable-stdin quiet",
                                           "cwd env group mode user project"), operands=1, dashes=True)}),
    "vagrant": Runner({"ssh": Wrapper(known_options("p", "c", "plain tty no-tty", "command"), text=("-c", "--command"), operands=99)}),
    "zellij": Runner({"run": Wrapper(known_options("cfi", "dn", "close-on-exit floating in-place start-suspended",
                                           "cwd direction name height width x y"))}),
    "wezterm": Runner({"start": Wrapper(known_options("", "", "no-auto-connect always-new-process", "class workspace position cwd domain"))}),
    "perf": Runner({
        "stat": Wrapper(known_options("aABcdgiInSTvj", "eCpGotrxDMb", "all-cpus no-aggr big-num detailed verbose no-inherit null "
                              "sync no-merge metric-only per-core per-socket per-thread per-die per-node quiet append "
                              "no-scale all-user all-kernel json summary",
                              "event cpu pid tid output repeat field-separator interval-print delay metrics cgroup log-fd "
                              "pre post timeout interval-count")),
        "record": Wrapper(known_options("aAbBdgiInNPqRsTvW", "cCDeFGjkmoprtuS", "all-cpus verbose quiet no-inherit stat data "
                                "phys-data timestamp period no-samples raw-samples no-buildid no-buildid-cache all-user "
                                "all-kernel no-buffering overwrite switch-events buildid-all tail-synthesize",
                                "event cpu pid tid output call-graph freq count mmap-pages delay cgroup user clockid filter "
                                "realtime branch-filter proc-map-timeout switch-output")),
        "trace": Wrapper(known_options("asSvTfi", "eoptuCmD", "all-cpus summary with-summary verbose no-inherit sched time",
                               "event expr output pid tid uid cpu mmap-pages duration call-graph filter delay")),
    }),
    "rr": Runner({"record": Wrapper(known_options("hnSw", "ocpv", "chaos no-syscall-buffer wait no-redirect-output",
                                          "output-trace-dir num-cpu-ticks print-trace-dir env"))}),
    "coverage": Runner({"run": Wrapper(known_options("aLpm", "", "append branch parallel-mode timid pylib",
                                             "rcfile include omit source context concurrency data-file"))}),
    "py-spy": Runner({"record": Wrapper(only_dashes=True), "top": Wrapper(only_dashes=True)}),
}  # fmt: skip
"""By program. The subcommand `""` means that the program itself runs its words."""


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
    words = list(argv)
    while words[:1] in (["builtin"], ["command"]):
        words.pop(0)
    if not words or words[0] is None:
        return False
    name = program_name(words[0])
    option = _BY_OPTION.get(name)
    if option is not None:
        return any(word is None or word.startswith(option) for word in words[1:])
    return name in _SETTING


_VARIABLES = frozenset(
    "BASH_ENV ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND IFS CDPATH GLOBIGNORE SHELL "
    "PAGER MANPAGER LESS LESSOPEN LESSCLOSE LESSKEY LESSKEYIN EDITOR VISUAL BROWSER FCEDIT SUDO_ASKPASS SSH_ASKPASS "
    "HOME TMPDIR PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS "
    "JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS GOFLAGS GOROOT GOTOOLDIR GOPROXY RUSTC_WRAPPER RUSTC "
    "RUSTFLAGS CARGO_HOME MAKEFLAGS MAKEFILES CC CXX CPP LD AR RIPGREP_CONFIG_PATH GREP_OPTIONS TAR_OPTIONS "
    "RSYNC_RSH CVS_RSH GZIP BZIP2 UNZIP ZIPINFO P7ZIP MORE MAGIC XZ_OPT XZ_DEFAULTS ZSTD_CLEVEL HGRCPATH "
    "EMACSLOADPATH VIMINIT EXINIT GVIMINIT INPUTRC TERMINFO TERMCAP TERMINFO_DIRS LOCPATH GCONV_PATH NLSPATH HOSTALIASES RES_OPTIONS MALLOC_TRACE "
    "OPENSSL_CONF OPENSSL_MODULES SSL_CERT_FILE SSL_CERT_DIR CURL_HOME CURL_CA_BUNDLE WGETRC AWKLIBPATH PHPRC "
    "PHP_INI_SCAN_DIR LUA_INIT LUA_CPATH JULIA_LOAD_PATH R_PROFILE R_PROFILE_USER R_ENVIRON ZDOTDIR FPATH "
    "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY AWS_PROFILE AWS_CONFIG_FILE KUBECONFIG "
    "DOCKER_HOST DOCKER_CONFIG".split()
)

_VARIABLE_PATTERNS = re.compile(
    r"(?:LD_|DYLD_|GIT_|BASH_FUNC_|PYTHON|PIP_|UV_|npm_config_|NPM_CONFIG_|YARN_|NODE_|PERL5|RUBY|GEM_|BUNDLE_|LUA_|"
    r"GCC_|CARGO_|RUSTUP_|TF_CLI_|ANSIBLE_|XDG_CONFIG_|ASAN_|GTK_|QT_).*"
    r"|.*(?:PATH|PAGER|EDITOR|_OPTIONS|_OPTS|OPT|_CONFIG|_COMMAND|_HOOK|_WRAPPER|_SHELL|_ASKPASS|RC)\Z",
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


_SHELL_LETTERS = "abefhiklmnprstuvxBCDEHPTc"
_SHELL_OPTIONS = known_options(
    _SHELL_LETTERS, "oO",
    "norc noprofile login posix restricted verbose debugger dump-strings dump-po-strings interactive noediting "
    "protected command",
    "init-file rcfile",
)  # fmt: skip

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
    # `bash +x` switches an option off: the same letters, with a plus
    words = tuple("-" + word[1:] if word and word.startswith("+") and len(word) > 1 else word for word in argv)
    parsed = parse_options(words, 1, _SHELL_OPTIONS)
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
