"""Commands that run in a container or a pod: the part of the words that is the command there."""

from whisper_tui.policy.wrappers.options import Options, known, parse
from whisper_tui.policy.wrappers.peeled import Peeled, program_name

_GLOBAL = known("Dv", "cHl", "debug tls tlsverify", "config context host log-level tlscacert tlscert tlskey "
                "namespace kubeconfig cluster user server token")  # fmt: skip
_EXEC = known("diTt", "euwn", "detach interactive tty privileged no-tty", "env env-file user workdir detach-keys index")
_RUN = known(
    "diPtqT", "aceEhlmpuvw",
    "detach interactive tty rm init privileged publish-all read-only no-healthcheck oom-kill-disable quiet "
    "disable-content-trust no-deps service-ports use-aliases build remove-orphans",
    "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota "
    "cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device dns dns-option dns-search domainname entrypoint env "
    "env-file expose gpus group-add health-cmd health-interval health-retries health-timeout hostname ip ip6 ipc "
    "isolation kernel-memory label label-file link log-driver log-opt mac-address memory memory-reservation "
    "memory-swap mount name network network-alias oom-score-adj pid pids-limit platform publish pull restart runtime "
    "security-opt shm-size stop-signal stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume "
    "volume-driver volumes-from workdir",
)  # fmt: skip
_POD = known("itq", "cnf", "stdin tty quiet", "container namespace filename pod-running-timeout context kubeconfig")


def container_command(argv: tuple[str | None, ...]) -> Peeled | None:
    """What docker, podman, kubectl and the like run inside. None: nothing, or the image's own command."""
    parsed = parse(argv, 1, _GLOBAL)
    if parsed is None:
        return None
    at = parsed.rest
    if argv[at : at + 1] in {("compose",), ("container",)}:
        at += 1
    verb = argv[at] if at < len(argv) else None
    if verb not in {"exec", "run"}:
        return None
    cluster = program_name(argv[0] or "") in {"kubectl", "oc"}
    if cluster:
        return _pod(argv, at)
    inner = _inside(argv, at + 1, _EXEC if verb == "exec" else _RUN)
    return inner if inner is None else Peeled(commands=(inner,)) if inner else _unknown()


def _unknown() -> Peeled:
    return Peeled(opaque="the options before the container's command are not known")


def _inside(argv: tuple[str | None, ...], start: int, options: Options) -> tuple[str | None, ...] | None:
    """The command behind options and the name of the container. Empty: not certain. None: there is none."""
    parsed = parse(argv, start, options)
    if parsed is None:
        return ()
    return argv[parsed.rest + 1 :] or None


def _pod(argv: tuple[str | None, ...], at: int) -> Peeled | None:
    if "--" in argv[at:]:
        behind = argv[argv.index("--", at) + 1 :]
        return Peeled(commands=(behind,)) if behind else None
    inner = _inside(argv, at + 1, _POD)
    return None if inner is None else Peeled(commands=(inner,)) if inner else _unknown()
