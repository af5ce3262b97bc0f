"""Clusters: a job of Slurm, a Pod of Kubernetes, an actor of Ray. Each is made for a place, and keeps its host process.

The first process of a job or a Pod ends it, so it keeps the host process. No cluster starts it again by itself: another
job, Pod or actor would be another place by the same name.
"""

import importlib.util
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadConfiguration, Unavailable
from whisper_tui.model.text import visible
from whisper_tui.supervisor.places.far_host import HostMode
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import EngineHost, ask_engine, engine_name, kept
from whisper_tui.system.own_program import own_script

_NO_SLURM = "Install Slurm's client commands, or name a login node of the cluster as host"
_NO_JOB = 75
"""The exit code here if no job runs."""

# Slurm sends the environment of whoever submits, which must stay here. Without it, batch script and steps begin alike.
_BARE = 'HOME=$(getent passwd "$(id -u)" | cut -d: -f6); export HOME PATH; exec "$@"'
# Jobs of one name and user run one after the other (singleton), so of two that were submitted at once one waits.
# A job that Slurm starts again on another node would be another place by the same name: no requeue.
_SUBMIT = """
name=$1; shift
found=$(squeue --noheader --me --name="$name" --states=PENDING,RUNNING,CONFIGURING,SUSPENDED \
  --sort=i --format="%A %T %r") || exit
if [ -z "$found" ]; then
  sbatch --parsable --job-name="$name" --dependency=singleton --no-requeue \
    --export=NIL --output=/dev/null --error=/dev/null --nodes=1 --ntasks=1 "$@" || exit
  found=$(squeue --noheader --me --name="$name" --sort=i --format="%A %T %r") || exit
fi
printf '%s\\n' "$found"
"""
_CANCEL = 'scancel --user="$(id -un)" --name="$1" --state=PENDING'
_STEP = f"""
name=$1; shift
job=$(squeue --noheader --me --name="$name" --states=RUNNING --sort=i --format=%A | head -n 1)
[ -n "$job" ] || {{ echo "no job $name runs" >&2; exit {_NO_JOB}; }}
exec srun --jobid="$job" --overlap --export=NONE --nodes=1 --ntasks=1 --mem=0 \
  --quiet --unbuffered --kill-on-bad-exit=0 -- /bin/sh -c '{_BARE}' whisper-tui-place "$@"
"""

_NO_KUBECTL = "Install kubectl on this machine"
_CONTAINER = "place"
_LABELS = {"app.kubernetes.io/managed-by": "whisper-tui"}


class SlurmTransport:
    """The one job of a place, on the resources that the configuration asks for."""

    holds: HostMode | None = "stay"

    def __init__(self, settings: PlaceSettings, near: str) -> None:
        self.name = settings.name
        self._host = EngineHost(settings.name, settings.option("host"))
        self._job = engine_name(settings.name, near)
        wanted = {
            "partition": "partition",
            "account": "account",
            "time": "time",
            "cpus": "cpus-per-task",
            "gpus": "gpus",
            "memory": "mem",
        }
        self._resources = [f"--{flag}={settings.option(key)}" for key, flag in wanted.items() if settings.option(key)]
        self._resources += shlex.split(settings.option("arguments"))

    def summary(self) -> str:
        """Return the job and the machine from which it is submitted."""
        return f"Slurm job {self._job} from {self._host.where}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` as a further step of the job, beside the host process."""
        return self._host.script(_STEP, self._job, *argv)

    async def hold(self, argv: Sequence[str]) -> None:
        """Submit the job, unless there is one. Raises `Unavailable` as long as it does not run, with Slurm's reason."""
        batch = shlex.join(["exec", "/bin/sh", "-c", _BARE, "whisper-tui-place", *kept(argv)])
        submit = self._host.script(_SUBMIT, self._job, *self._resources, f"--wrap={batch}")
        answer = await ask_engine(submit, missing=_NO_SLURM)
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint=self.advice(answer.code))
        jobs = [line.split(maxsplit=2) for line in answer.out.splitlines()]
        states = [words for words in jobs if len(words) == 3]
        if not any(state == "RUNNING" for _, state, _ in states):
            job, state, reason = states[0] if states else ("", "UNKNOWN", "")
            raise Unavailable(
                visible(f"job {job} of Slurm is {state.lower()} ({reason})"), hint="It is tried again until it runs"
            )

    async def withdraw(self) -> None:
        """Cancel the job, unless it runs. Raises `Unavailable`."""
        answer = await ask_engine(self._host.script(_CANCEL, self._job), missing=_NO_SLURM)
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint=self.advice(answer.code))

    def advice(self, code: int) -> str:
        """Return how to see the job."""
        if code == _NO_JOB:
            return f"Try: squeue --me --name={self._job}"
        return self._host.advice(code)


class KubernetesTransport:
    """One Pod by a fixed name. No controller makes it anew: another Pod would be another place by the same name."""

    holds: HostMode | None = "stay"

    def __init__(self, settings: PlaceSettings, near: str) -> None:
        self.name = settings.name
        self._settings = settings
        self._pod = settings.option("pod") or engine_name(settings.name, near)
        chosen = ((f"--{key}", settings.option(key)) for key in ("context", "namespace"))
        self._kubectl = ["kubectl", *(f"{flag}={value}" for flag, value in chosen if value)]

    def summary(self) -> str:
        """Return the Pod."""
        return f"Kubernetes Pod {self._pod}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in the Pod, without a terminal."""
        return [*self._kubectl, "exec", "-i", self._pod, f"--container={_CONTAINER}", "--", *argv]

    async def hold(self, argv: Sequence[str]) -> None:
        """Create the Pod, unless there is one. Raises `Unavailable` as long as it does not run, with the reason."""
        pod = await self._find()
        if pod is not None and pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            await self._remove(pod)
            pod = None
        if pod is None:
            # Of two who create the Pod at once, one is told that its name is taken: the other's Pod is as good.
            await self._ask(
                "create", "--validate=false", "--filename=-", data=self._manifest(argv), expected="AlreadyExists"
            )
            pod = await self._find() or {}
        if pod.get("metadata", {}).get("labels", {}).items() < _LABELS.items():
            raise Unavailable(
                f"the Pod {self._pod} was not made for places", hint=f"Set another name: places.{self.name}.pod"
            )
        if pod.get("status", {}).get("phase") != "Running":
            raise Unavailable(
                visible(f"the Pod {self._pod} does not run yet: {_waiting(pod)}"),
                hint="It is tried again until it does",
            )

    async def withdraw(self) -> None:
        """Remove the Pod, unless it runs. Raises `Unavailable`."""
        pod = await self._find()
        ours = pod is not None and pod.get("metadata", {}).get("labels", {}).items() >= _LABELS.items()
        if pod is not None and ours and pod.get("status", {}).get("phase") != "Running":
            await self._remove(pod)

    def advice(self, code: int) -> str:
        """Return how to see the Pod."""
        return f"Try: {shlex.join([*self._kubectl, 'describe', 'pod', self._pod])}" if code == 1 else ""

    async def _find(self) -> dict[str, Any] | None:
        """Return the Pod. None: there is none."""
        out = await self._ask("get", "pod", self._pod, "--output=json", expected="NotFound")
        try:
            pod = json.loads(out) if out else None
        except ValueError:
            raise Unavailable("kubectl has printed no Pod", hint=self.advice(1)) from None
        return pod if isinstance(pod, dict) else None

    async def _remove(self, pod: Mapping[str, Any]) -> None:
        """Remove a Pod that has ended, and no other one that has its name by now."""
        about = pod["metadata"]
        path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
        only = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": about["uid"]}}
        await self._ask("delete", f"--raw={path}", "--filename=-", data=only, expected="NotFound")

    async def _ask(self, *words: str, data: object = None, expected: str) -> str:
        """Run kubectl, and return its output. Empty: it failed for the expected reason."""
        text = b"" if data is None else json.dumps(data).encode()
        answer = await ask_engine([*self._kubectl, *words], text, missing=_NO_KUBECTL)
        if answer.code == 0:
            return answer.out
        if f"({expected})" in answer.err:
            return ""
        raise Unavailable(f"{self.summary()}: {answer.reason()}", hint=self.advice(answer.code))

    def _manifest(self, argv: Sequence[str]) -> dict[str, Any]:
        settings = self._settings
        wanted = {
            "cpu": settings.option("cpus"),
            "memory": settings.option("memory"),
            "nvidia.com/gpu": settings.option("gpus"),
        }
        amounts = {name: amount for name, amount in wanted.items() if amount}
        container = {
            "name": _CONTAINER,
            "image": settings.option("image"),
            "command": kept(argv),
            "resources": {"requests": amounts, "limits": amounts},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._pod, "labels": _LABELS},
            # Commands get no right to the cluster: a token would lie in their file system otherwise.
            "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container]},
        }


def _waiting(pod: Mapping[str, Any]) -> str:
    """Return the reason why a Pod does not run, in the cluster's words."""
    status = pod.get("status", {})
    states = [each.get("state", {}).get("waiting", {}) for each in status.get("containerStatuses", [])]
    known = [*states, *(each for each in status.get("conditions", []) if each.get("status") == "False")]
    for each in known:
        if reason := each.get("reason"):
            return f"{reason}: {each['message']}" if each.get("message") else str(reason)
    return str(status.get("phase", "unknown"))


_NO_RAY = "Install the extra [ray]: pip install '.[ray]' in the checkout that whisper_tui was installed from"
_BRIDGE = Path(__file__).with_name("ray_bridge.py")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class RayTransport:
    """One named detached actor, which is never restarted: Ray would start it on another node.

    The supervisor does not import Ray: each connection is a process of its own, `ray_bridge`.
    """

    holds: HostMode | None = "stay"

    def __init__(self, settings: PlaceSettings, near: str) -> None:
        """Raises `BadConfiguration` for resources that cannot be read."""
        self.name = settings.name
        self._address = settings.option("address") or "auto"
        self._actor = engine_name(settings.name, near)
        self._resources = json.dumps(resources(settings))

    def summary(self) -> str:
        """Return the cluster and the actor."""
        return f"Ray actor {self._actor} of {self._address}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line of a bridge to a program that the actor starts."""
        return self._bridge("run", *argv)

    async def hold(self, argv: Sequence[str]) -> None:
        """Create the actor, unless it lives. Raises `Unavailable` as long as the cluster has no room for it."""
        if importlib.util.find_spec("ray") is None:
            raise Unavailable("the package ray is not installed", hint=_NO_RAY)
        answer = await ask_engine(self._bridge("hold", *argv), missing=_NO_RAY)
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint="It is tried again")

    async def withdraw(self) -> None:
        """End the actor, whether it has found room or not: commands outlive it. Raises `Unavailable`."""
        answer = await ask_engine(self._bridge("withdraw"), missing=_NO_RAY)
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint="Try again")

    def advice(self, code: int) -> str:
        """Return nothing: the bridge says what to do."""
        return ""

    def _bridge(self, mode: str, *argv: str) -> list[str]:
        # As a script: the class of the actor then travels to the cluster, where no module of ours is installed.
        return [*own_script(str(_BRIDGE)), mode, self._address, self._actor, self._resources, *argv]


def resources(settings: PlaceSettings) -> dict[str, object]:
    """Return the resources of the actor in Ray's words. Raises `BadConfiguration`."""
    wanted: dict[str, object] = {"num_cpus": _number(settings, "cpus", "1"), "num_gpus": _number(settings, "gpus", "0")}
    if said := settings.option("memory"):
        digits, unit = said[:-1], said[-1].lower()
        text, factor = (digits, _UNITS[unit]) if unit in _UNITS and not said[-1].isdigit() else (said, 1)
        if not text.isdecimal():
            raise BadConfiguration(f"places.{settings.name}.memory may not be {said!r}", hint="Write it like 8G")
        wanted["memory"] = int(text) * factor
    own: dict[str, float] = {}
    for part in filter(None, settings.option("resources").replace(",", " ").split()):
        name, _, amount = part.partition("=")
        own[name] = _float(settings, "resources", amount or "1")
    return {**wanted, "resources": own} if own else wanted


def _number(settings: PlaceSettings, key: str, default: str) -> float:
    return _float(settings, key, settings.option(key) or default)


def _float(settings: PlaceSettings, key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise BadConfiguration(f"places.{settings.name}.{key} may not be {text!r}", hint="Write a number, such as 2")
    return number
