"""The packages of this checkout, built as installers build them, and environments that have one of them."""

import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def python(*words: object, cwd: Path = ROOT, executable: object = sys.executable) -> str:
    """Run an interpreter and return what it printed. Raises with its complaint if it fails."""
    answer = subprocess.run(
        [str(executable), *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=100, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout.strip()


def build(kind: str, source: Path, into: Path) -> Path:
    """Build one package of a source tree with the declared build system."""
    program = "import sys, hatchling.build as b; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"
    into.mkdir(parents=True, exist_ok=True)
    return into / python("-c", program, kind, into, cwd=source).splitlines()[-1]


def wheel_of(sdist: Path, into: Path) -> Path:
    """Build the wheel from the source package, as an installer does it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into / "unpacked", **SAFELY)
    (source,) = (into / "unpacked").iterdir()
    return build("wheel", source, into)


def installed_into(place: Path, package: Path) -> Path:
    """Make an environment that has this package and nothing else. Returns its interpreter."""
    venv.create(place, with_pip=False)
    interpreter = place / "bin" / "python"
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--python", interpreter)
    python(*pip, "install", "--no-index", "--no-deps", package)
    return interpreter


def installed_with_what_it_needs(place: Path, package: Path) -> Path:
    """Make an environment that has this package, and for all others those of the tests. Returns its interpreter."""
    interpreter = installed_into(place, package)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter
