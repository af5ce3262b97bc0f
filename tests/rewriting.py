"""Rewrites the assertions of all tests once, before there are workers: each of them would do it for itself."""

import compileall
import multiprocessing
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import PYC_TAIL, assertstate_key, get_cache_dir

ROOT = Path(__file__).parent.parent


def rewrite_assertions(config: pytest.Config) -> None:
    """Compile the product, and all tests whose compiled form is older than they are, on all processors.

    pytest takes what it finds, if it is of the same source, and rewrites the rest when it imports it.
    """
    modules = chain(ROOT.glob("tests/**/test_*.py"), ROOT.glob("tests/**/conftest.py"))
    stale = [module for module in modules if _written_at(_compiled(module)) < _written_at(module)]
    count = os.cpu_count() or 1
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_rewrite, args=(config, stale[number::count])) for number in range(count)]
    for worker in workers[: len(stale)]:
        worker.start()
    compileall.compile_dir(ROOT / "whisper_tui", quiet=2)
    for worker in workers[: len(stale)]:
        worker.join()


def _rewrite(config: pytest.Config, modules: Sequence[Path]) -> None:
    for module in modules:
        compiled = _compiled(module)
        try:
            compiled.parent.mkdir(exist_ok=True)
        except OSError:
            return  # nothing may be written here
        source, code = rewrite._rewrite_test(module, config)
        rewrite._write_pyc(config.stash[assertstate_key], code, source, compiled)


def _compiled(module: Path) -> Path:
    return get_cache_dir(module) / f"{module.stem}{PYC_TAIL}"


def _written_at(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0
