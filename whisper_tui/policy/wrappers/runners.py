"""Programs that run others by a subcommand: environments of projects, packages fetched for the moment, secrets."""

from dataclasses import dataclass

from whisper_tui.policy.wrappers.options import Options, known
from whisper_tui.policy.wrappers.table import Wrapper

_NONE = Options()


@dataclass(frozen=True)
class Runner:
    """A program some of whose subcommands run what stands behind them."""

    verbs: dict[str, Wrapper]
    """How the command is found behind a subcommand of one word, or of two with a blank between."""
    options: Options = _NONE
    """What may stand before the subcommand."""
    versions: bool = False
    """Whether the command may carry a version: `ruff@latest`."""


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
_UV_GLOBAL = known(
    "qvn", "", "quiet verbose no-cache offline no-progress native-tls no-config no-python-downloads preview "
    "managed-python no-managed-python",
    "cache-dir color project directory config-file allow-insecure-host python-preference",
)  # fmt: skip
_UV = Wrapper(known("qvnUs", "pifPCw", _UV_FLAGS, _UV_INDEX), module=("-m", "--module"))
_NPX = Wrapper(
    known(
        "yq", "pcwn",
        "yes no quiet silent prefer-offline prefer-online offline ignore-existing no-install always-spawn workspaces "
        "include-workspace-root ignore-scripts verbose",
        "package call workspace shell node-arg cache userconfig registry loglevel prefix script-shell",
    ),
    text=("-c", "--call"),
)  # fmt: skip
_NPM_GLOBAL = known(
    "gsdqy", "Cwp", "silent quiet verbose global workspaces include-workspace-root offline prefer-offline yes no",
    "prefix workspace loglevel userconfig registry cache package script-shell",
)  # fmt: skip
_PNPM_GLOBAL = known("rwsc", "CF", "shell-mode recursive workspace-root silent stream parallel no-bail bail color no-color "
                     "aggregate-output", "dir filter filter-prod reporter loglevel resume-from")  # fmt: skip
_PNPM = Wrapper(known("rcsw", "C", "recursive parallel shell-mode no-bail report-summary reverse silent no-sort",
                      "resume-from package allow-build filter dir"), joining=("-c", "--shell-mode"))  # fmt: skip
_YARN = Wrapper(known("TBqs", "p", "top-level binaries-only quiet silent inspect inspect-brk require", "package cwd"))
_BUN = Wrapper(known("b", "p", "bun silent verbose yes if-present watch hot no-install", "package filter cwd shell"))
_CONDA = Wrapper(
    known("vd", "npreal", "dev debug-wrapper-scripts no-capture-output live-stream verbose quiet detach clean-env",
          "name prefix cwd root-prefix env attach label solver"),
)  # fmt: skip
_SECRETS = Wrapper(
    known(
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
    "pipx": Runner({"run": Wrapper(known("qv", "", "quiet verbose no-cache pypackages system-site-packages editable",
                                         "spec python index-url pip-args with"))},
                   known("qv", "", "quiet verbose global")),
    "poetry": Runner({"run": Wrapper()}, known("qvn", "PC", "quiet verbose no-interaction ansi no-ansi no-plugins no-cache",
                                               "project directory")),
    "pdm": Runner({"run": Wrapper(known("gsl", "pSk", "global site-packages list json recreate",
                                        "project env-file venv skip"))},
                  known("qvI", "c", "quiet verbose ignore-python no-cache", "config")),
    "hatch": Runner({"run": Wrapper(known("", "eix", "force-continue ignore-compat", "env include exclude filter"), joins=True),
                     "env run": Wrapper(known("", "eix", "force-continue ignore-compat", "env include exclude filter"), joins=True)},
                    known("vq", "ep", "verbose quiet color no-color interactive no-interactive",
                          "env project data-dir cache-dir config")),
    "rye": Runner({"run": Wrapper(known("lvq", "", "list verbose quiet", "pyproject"))}),
    "pipenv": Runner({"run": Wrapper(known("", "", "system"))},
                     known("qv", "", "bare clear quiet verbose site-packages", "python pypi-mirror")),
    "conda": Runner({"run": _CONDA}),
    "mamba": Runner({"run": _CONDA}),
    "micromamba": Runner({"run": _CONDA}, known("vqy", "r", "verbose quiet yes", "root-prefix")),
    "pixi": Runner({"run": Wrapper(known("vq", "e", "frozen locked no-install clean-env verbose quiet skip-deps as-is",
                                         "environment manifest-path")),
                    "exec": Wrapper(known("vq", "scw", "force-reinstall verbose quiet", "spec channel with"))}),
    "npx": Runner({"": _NPX}, versions=True),
    "npm": Runner({"exec": _NPX, "x": _NPX}, _NPM_GLOBAL, versions=True),
    "pnpm": Runner({"exec": _PNPM, "dlx": _PNPM}, _PNPM_GLOBAL, versions=True),
    "pnpx": Runner({"": _PNPM}, versions=True),
    "yarn": Runner({"exec": _YARN, "dlx": _YARN, "run": _YARN}, known("s", "", "silent", "cwd"), versions=True),
    "bunx": Runner({"": _BUN}, versions=True),
    "bun": Runner({"x": _BUN, "run": _BUN, "exec": Wrapper(joins=True)},
                  known("b", "", "bun silent watch hot", "cwd config filter"), versions=True),
    "bundle": Runner({"exec": Wrapper(known("V", "r", "keep-file-descriptors verbose no-color", "gemfile retry"))},
                     known("V", "r", "verbose no-color", "retry gemfile")),
    "bundler": Runner({"exec": Wrapper(known("V", "r", "keep-file-descriptors verbose no-color", "gemfile retry"))}),
    "composer": Runner({"exec": Wrapper(known("lnqv", "d", "list no-interaction quiet verbose no-plugins no-scripts",
                                              "working-dir"))}, known("nqv", "d", "no-interaction quiet", "working-dir")),
    "devbox": Runner({"run": Wrapper(known("lq", "ce", "list quiet pure omit-nix-env recompute all-projects",
                                           "config env env-file environment"))},
                     known("q", "", "quiet")),
    "direnv": Runner({"exec": Wrapper(operands=1, dashes=True)}),
    "asdf": Runner({"exec": Wrapper()}),
    "rbenv": Runner({"exec": Wrapper()}),
    "pyenv": Runner({"exec": Wrapper()}),
    "nodenv": Runner({"exec": Wrapper()}),
    "volta": Runner({"run": Wrapper(known("", "", "bundled-npm no-yarn no-pnpm", "node npm pnpm yarn env"))}),
    "fnm": Runner({"exec": Wrapper(known("", "", "", "using fnm-dir log-level arch"))}),
    "rustup": Runner({"run": Wrapper(known("", "", "install"), operands=1)}, known("vq", "", "verbose quiet")),
    "opam": Runner({"exec": Wrapper(known("y", "", "set-root set-switch yes", "switch root"))}),
    "stack": Runner({"exec": Wrapper(known("", "", "plain", "package"))}),
    "cabal": Runner({"exec": Wrapper(known("v", "w", "", "project-file builddir"))}),
    "guix": Runner({"environment": Wrapper(only_dashes=True), "shell": Wrapper(only_dashes=True)}),
    "op": Runner({"run": _SECRETS}, _SECRETS.options),
    "doppler": Runner({"run": _SECRETS}, _SECRETS.options),
    "infisical": Runner({"run": _SECRETS}, _SECRETS.options),
    "teller": Runner({"run": _SECRETS}, _SECRETS.options),
    "akeyless": Runner({"run": _SECRETS}, _SECRETS.options),
    "aws-vault": Runner({"exec": _WITH_NAME}, _SECRETS.options),
    "chamber": Runner({"exec": Wrapper(only_dashes=True)}),
    "saml2aws": Runner({"exec": Wrapper(known("", "a", "", "idp-account profile exec-profile"), dashes=True)}),
    "vault": Runner({"agent": Wrapper(only_dashes=True), "proxy": Wrapper(only_dashes=True)}),
    "sops": Runner({"exec-env": Wrapper(known("", "", "pristine same-process background", "user"), operands=1, joins=True),
                    "exec-file": Wrapper(known("", "", "no-fifo background", "user filename"), operands=1, joins=True)}),
    "foreman": Runner({"run": Wrapper(known("", "efdpt", "", "env procfile root"))}),
    "honcho": Runner({"run": Wrapper(known("", "efd", "", "env procfile app-root"))}, known("", "efd", "", "env procfile app-root")),
    "heroku": Runner({"run": Wrapper(known("x", "asre", "exit-code no-tty no-notify", "app size remote env type")),
                      "local:run": Wrapper(known("", "ep", "", "env port"))}),
    "toolbox": Runner({"run": Wrapper(known("y", "cdrl", "assumeyes verbose", "container distro release log-level"))},
                      known("yv", "l", "assumeyes verbose", "log-level")),
    "distrobox": Runner({"enter": Wrapper(only_dashes=True)}),
    "machinectl": Runner({"shell": Wrapper(known("q", "ME", "quiet no-ask-password", "machine host uid setenv"), operands=1)},
                         known("q", "MH", "quiet no-pager", "machine host")),
    "multipass": Runner({"exec": Wrapper(known("nv", "d", "no-map-working-directory verbose", "working-directory"),
                                         operands=1, dashes=True)}),
    "incus": Runner({"exec": Wrapper(known("tTq", "", "force-interactive force-noninteractive disable-stdin quiet",
                                           "cwd env group mode user project"), operands=1, dashes=True)}),
    "vagrant": Runner({"ssh": Wrapper(known("p", "c", "plain tty no-tty", "command"), text=("-c", "--command"), operands=99)}),
    "zellij": Runner({"run": Wrapper(known("cfi", "dn", "close-on-exit floating in-place start-suspended",
                                           "cwd direction name height width x y"))}),
    "wezterm": Runner({"start": Wrapper(known("", "", "no-auto-connect always-new-process", "class workspace position cwd domain"))}),
    "perf": Runner({
        "stat": Wrapper(known("aABcdgiInSTvj", "eCpGotrxDMb", "all-cpus no-aggr big-num detailed verbose no-inherit null "
                              "sync no-merge metric-only per-core per-socket per-thread per-die per-node quiet append "
                              "no-scale all-user all-kernel json summary",
                              "event cpu pid tid output repeat field-separator interval-print delay metrics cgroup log-fd "
                              "pre post timeout interval-count")),
        "record": Wrapper(known("aAbBdgiInNPqRsTvW", "cCDeFGjkmoprtuS", "all-cpus verbose quiet no-inherit stat data "
                                "phys-data timestamp period no-samples raw-samples no-buildid no-buildid-cache all-user "
                                "all-kernel no-buffering overwrite switch-events buildid-all tail-synthesize",
                                "event cpu pid tid output call-graph freq count mmap-pages delay cgroup user clockid filter "
                                "realtime branch-filter proc-map-timeout switch-output")),
        "trace": Wrapper(known("asSvTfi", "eoptuCmD", "all-cpus summary with-summary verbose no-inherit sched time",
                               "event expr output pid tid uid cpu mmap-pages duration call-graph filter delay")),
    }),
    "rr": Runner({"record": Wrapper(known("hnSw", "ocpv", "chaos no-syscall-buffer wait no-redirect-output",
                                          "output-trace-dir num-cpu-ticks print-trace-dir env"))}),
    "coverage": Runner({"run": Wrapper(known("aLpm", "", "append branch parallel-mode timid pylib",
                                             "rcfile include omit source context concurrency data-file"))}),
    "py-spy": Runner({"record": Wrapper(only_dashes=True), "top": Wrapper(only_dashes=True)}),
}  # fmt: skip
"""By program. A subcommand `""` means that the program itself is one."""
