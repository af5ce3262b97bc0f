"""Programs that run the rest of their words as a command, with the options that they take before it."""

from dataclasses import dataclass

from whisper_tui.policy.wrappers.options import Options, known

_NONE = Options()


@dataclass(frozen=True)
class Wrapper:
    """How the command behind a wrapper is found."""

    options: Options = _NONE
    operands: int = 0
    """Words of its own between the options and the command."""
    assignments: bool = False
    """Whether `NAME=value` may stand before the command."""
    itself: tuple[str, ...] = ()
    """Options with which it runs no other command."""
    text: tuple[str, ...] = ()
    """Options whose value is text for a shell, run instead of words."""
    joins: bool = False
    """Whether the rest is joined by blanks and read by a shell."""
    joining: tuple[str, ...] = ()
    """Options with which the rest is joined like this."""
    module: tuple[str, ...] = ()
    """Options with which the rest is a module of Python."""
    dashes: bool = False
    """Whether `--` may stand between its operands and the command."""
    only_dashes: bool = False
    """Whether the command is what follows `--`, whatever stands before it."""


_SUDO = known(
    "AbBEHikKlnNPSsVv",
    "CDghpRrTtUu",
    "askpass background bell preserve-env set-home login remove-timestamp reset-timestamp list non-interactive "
    "no-update preserve-groups stdin shell version validate help",
    "close-from chdir group host prompt chroot role command-timeout type other-user user",
)
_NAMESPACES = known(
    "mnupUrfcCTiS", "SGRw",
    "mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto keep-caps kill-child "
    "mount-proc",
    "setuid setgid root wd propagation setgroups map-user map-group map-users map-groups boottime monotonic",
)  # fmt: skip

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(_SUDO, assignments=True, itself=("-l", "--list", "-V", "--version", "--validate", "--help")),
    "doas": Wrapper(known("nsL", "aCu"), itself=("-L", "-C")),
    "pkexec": Wrapper(known("", "", "disable-internal-agent keep-cwd version help", "user")),
    "gosu": Wrapper(operands=1),
    "su-exec": Wrapper(operands=1),
    "nice": Wrapper(known("", "n", "", "adjustment")),
    "ionice": Wrapper(known("t", "cnpPu", "ignore", "class classdata pid pgid uid"), itself=("-p", "-P", "-u")),
    "nohup": Wrapper(),
    "timeout": Wrapper(known("vfp", "ks", "foreground preserve-status verbose", "kill-after signal"), operands=1),
    "stdbuf": Wrapper(known("", "ioe", "", "input output error")),
    "setsid": Wrapper(known("cfw", "", "ctty fork wait")),
    "time": Wrapper(known("apqvV", "of", "append portability quiet verbose", "output format")),
    "command": Wrapper(known("pvV"), itself=("-v", "-V")),
    "builtin": Wrapper(),
    "exec": Wrapper(known("cl", "a")),
    "chrt": Wrapper(
        known("abdfiormvR", "DPTp", "all-tasks batch deadline fifo idle other rr max verbose reset-on-fork",
              "sched-runtime sched-period sched-deadline pid"),
        operands=1, itself=("-p", "--pid", "-m", "--max"),
    ),
    "taskset": Wrapper(known("ac", "p", "all-tasks cpu-list", "pid"), operands=1, itself=("-p", "--pid")),
    "setpriv": Wrapper(
        known("d", "", "dump nnp no-new-privs clear-groups keep-groups init-groups list-caps reset-env",
              "ambient-caps inh-caps bounding-set reuid regid ruid euid rgid egid groups securebits pdeathsig "
              "selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter ptracer"),
    ),
    "chroot": Wrapper(known("", "", "skip-chdir", "groups userspec"), operands=1),
    "unshare": Wrapper(_NAMESPACES),
    "nsenter": Wrapper(known("amunipUCTFZre", "tSGw", "all mount uts ipc net pid user cgroup time no-fork env "
                             "follow-context preserve-credentials root wd", "target setuid setgid wdns")),
    "strace": Wrapper(known("cCdfFhiknqrtTvVwxyYzZ", "aEeIoOpPsSuUXb", "follow-forks syscall-times summary-only "
                            "summary instruction-pointer stack-traces relative-timestamps absolute-timestamps "
                            "no-abbrev decode-fds decode-pids quiet successful-only failed-only seccomp-bpf",
                            "trace signal status output string-limit env attach user columns interruptible")),
    "ltrace": Wrapper(known("bcCfhiLrStTV", "aADeFlnopsuwxX", "", "output config library")),
    "flock": Wrapper(known("sxenuoFv", "wEc", "shared exclusive nonblock unlock close no-fork verbose",
                           "timeout conflict-exit-code command"), operands=1, text=("-c", "--command")),
    "watch": Wrapper(known("bcCdegprtwx", "nqs", "beep color no-color errexit chgexit precise no-rerun no-title "
                           "no-wrap exec differences follow", "interval equexit shotsdir"), joins=True),
    "busybox": Wrapper(itself=("--list", "--help", "--install")),
    "toybox": Wrapper(),
    "setarch": Wrapper(known("BFILRSTXZv3", "p", "32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize "
                             "whole-seconds sticky-timeouts read-implies-exec mmap-page-zero 3gb verbose")),
    "linux32": Wrapper(known("BFILRSTXZv3")),
    "linux64": Wrapper(known("BFILRSTXZv3")),
    "numactl": Wrapper(known("als", "iNCmpP", "all localalloc show", "interleave cpunodebind physcpubind membind preferred")),
    "prlimit": Wrapper(known("v", "p", "verbose raw noheadings as core cpu data fsize locks memlock msgqueue nice nofile "
                             "nproc rss rtprio rttime sigpending stack", "pid output"), itself=("-p", "--pid")),
    "systemd-run": Wrapper(known("dGPqrtS", "EHMpu", "user system scope slice-inherit remain-after-exit send-sighup "
                                 "pty pipe quiet collect shell wait no-block no-ask-password same-dir",
                                 "unit property description slice service-type uid gid nice working-directory setenv "
                                 "on-active on-boot on-calendar")),
    "firejail": Wrapper(),
    "bwrap": Wrapper(known("", "", "unshare-all unshare-user unshare-ipc unshare-pid unshare-net unshare-uts "
                           "unshare-cgroup share-net new-session die-with-parent as-pid-1 clearenv",
                           "chdir uid gid hostname unsetenv proc dev tmpfs mqueue dir")),
    "proot": Wrapper(known("0v", "rbmqwkiRS", "", "rootfs bind mount qemu cwd kernel-release change-id")),
    "entr": Wrapper(known("acdnprsxz")),
    "fakeroot": Wrapper(known("huv", "lisb", "unknown-is-real", "lib faked")),
    "faketime": Wrapper(known("mf", "p"), operands=1),
    "valgrind": Wrapper(known("qv", "", "leak-check quiet verbose", "tool log-file")),
    "dbus-run-session": Wrapper(),
    "xvfb-run": Wrapper(known("al", "efnpsw", "auto-servernum listen-tcp", "error-file auth-file server-num server-args")),
    "caffeinate": Wrapper(known("dimsu", "tw")),
    "chronic": Wrapper(known("ve")),
    "unbuffer": Wrapper(known("p")),
    "rlwrap": Wrapper(known("acimnrvA", "bfHs")),
    "torsocks": Wrapper(known("iq")),
    "proxychains": Wrapper(known("q", "f")),
    "proxychains4": Wrapper(known("q", "f")),
    "cpulimit": Wrapper(known("ziv", "lpe", "", "limit")),
    "hyperfine": Wrapper(known("iN", "wmMrps", "ignore-failure", "warmup min-runs max-runs runs prepare shell"), joins=True),
    "catchsegv": Wrapper(),
    "xargs": Wrapper(
        known("0prtxoile", "adEILnPs", "null interactive no-run-if-empty verbose exit open-tty show-limits replace eof max-lines",
              "arg-file delimiter max-args max-procs max-chars process-slot-var"),
    ),
    "ssh": Wrapper(known("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw"), operands=1, joins=True),
    "mosh": Wrapper(known("46an", "p", "", "ssh port server"), operands=1),
    "script": Wrapper(known("aefqV", "cBEImOoTt", "append flush return quiet force version",
                            "command log-in log-out log-io log-timing echo logging-format output-limit"),
                      operands=1, text=("-c", "--command")),
    "su": Wrapper(known("flmpP", "cgGsTw", "login preserve-environment pty fast",
                        "command session-command group supp-group shell whitelist-environment"),
                  text=("-c", "--command", "--session-command"), operands=99),
    "runuser": Wrapper(known("flmpP", "cgGsuTw", "login preserve-environment pty fast",
                             "command session-command group supp-group shell user whitelist-environment"),
                       text=("-c", "--command", "--session-command")),
    "env": Wrapper(known("iv0", "uCSa", "ignore-environment null debug list-signal-handling default-signal "
                         "ignore-signal block-signal", "unset chdir split-string argv0"), assignments=True),
    "cmd": Wrapper(),
    "summon": Wrapper(known("V", "fDpe", "ignore-all version up", "file subs provider environment yaml ignore")),
    "envconsul": Wrapper(known("", "", "once pristine sanitize upcase", "config consul-addr prefix secret vault-addr "
                               "vault-token log-level kill-signal service-query")),
    "ssh-agent": Wrapper(known("csdDkT", "aEtPO")),
    "sshpass": Wrapper(known("ev", "fdpP")),
    "autossh": Wrapper(known("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWwM"), operands=1, joins=True),
    "setuidgid": Wrapper(operands=1),
    "envuidgid": Wrapper(operands=1),
    "envdir": Wrapper(operands=1),
    "chpst": Wrapper(known("vVP012", "uUbe/nlLmdofpcrt")),
    "softlimit": Wrapper(known("", "adsmolpfcrt")),
    "cgexec": Wrapper(known("", "g", "sticky")),
    "daemonize": Wrapper(known("av", "cepoluE")),
    "eatmydata": Wrapper(),
    "fakechroot": Wrapper(known("", "e", "use-system-libs", "environment config-dir elfloader")),
    "datefudge": Wrapper(known("s", "", "static"), operands=1),
    "torify": Wrapper(),
    "distcc": Wrapper(),
    "sccache": Wrapper(),
    "heaptrack": Wrapper(known("dr", "op", "debug record-only raw", "output pid")),
    "gdbserver": Wrapper(known("", "", "once multi wrapper disable-randomization"), operands=1),
    "watchexec": Wrapper(known("rncdp1vqN", "wieofsWEj", "restart clear no-vcs-ignore no-project-ignore once postpone "
                               "notify no-shell", "watch exts ignore filter shell signal debounce delay-run workdir")),
    "dtach": Wrapper(known("", "ANnce", "", "")),
    "abduco": Wrapper(known("", "cnAe"), operands=0),
    "coreutils": Wrapper(),
    "run0": Wrapper(known("", "ugDE", "no-ask-password slice-inherit pipe pty", "unit user group nice chdir setenv slice "
                          "property background description")),
    "flatpak-spawn": Wrapper(known("v", "", "verbose host clear-env watch-bus latest-version no-network sandbox", "forward-fd "
                             "env unset-env directory env-fd app-path usr-path sandbox-expose")),
    "lxc-attach": Wrapper(known("ers", "nPvugofRL", "elevated-privileges clear-env keep-env remount-sys-proc quiet",
                                "name lxcpath arch namespaces set-var keep-var uid gid logfile logpriority rcfile")),
    "lxc-execute": Wrapper(known("dq", "nPfsugol", "daemon quiet", "name lxcpath rcfile define uid gid logfile logpriority")),
    "distrobox-enter": Wrapper(only_dashes=True),
    "nsjail": Wrapper(only_dashes=True),
    "pdsh": Wrapper(known("behLNqSVdvk", "wxlutfRMCgaXFiP"), joins=True),
    "dsh": Wrapper(known("aciMq", "mgfrnNF", "all concurrent-shell wait-shell show-machine-names verbose quiet",
                         "machine group file remoteshell forklimit"), joins=True),
    "clush": Wrapper(known("abBcdGLNqrSv", "wxglmofptuX", "all diff nostdin quiet verbose",
                           "user options fanout connect_timeout command_timeout"), joins=True),
    "pssh": Wrapper(known("iAvPI", "hHlpotexO", "inline askpass verbose print", "hosts host user par outdir timeout"), joins=True),
    "parallel-ssh": Wrapper(known("iAvPI", "hHlpotexO", "inline askpass verbose print", "hosts host user par outdir timeout"),
                            joins=True),
    "sg": Wrapper(known("", "c"), operands=99, text=("-c",)),
    "gsudo": Wrapper(known("ndwkhs", "iu", "new direct wait keepShell", "integrity user")),
}  # fmt: skip
"""By program name, without a directory."""

ALLOW_LOOKS_THROUGH = frozenset({"timeout", "nice", "nohup", "stdbuf"})
"""The only wrappers behind which a rule that allows the inner command still holds."""

FOREIGN_SHELLS = frozenset("nu xonsh elvish pwsh powershell ion osh ysh oil murex".split())
"""Shells whose text is read by rules of their own. What bash would make of it is looked through all the same."""

SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish rbash yash csh tcsh pdksh oksh".split())
