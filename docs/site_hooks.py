"""Hooks of `make docs`: pages and pictures that stand outside of docs/ become part of the site."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

PAGES = {
    "SECURITY.md": "project/SECURITY.md",
    "CONTRIBUTING.md": "project/CONTRIBUTING.md",
    "CHANGELOG.md": "project/CHANGELOG.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Pages of the repository, and where they are in the site."""

SITE = {
    **PAGES,
    "README.md": "index.md",
    "docs/decisions": "decisions/README.md",
    "docs/decisions/": "decisions/README.md",
}


def _in_site(path: str) -> str | None:
    """The place in the site of a path in the repository; None where the site does not have it."""
    if path in SITE:
        return SITE[path]
    if path.startswith("screenshots/"):
        return path
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository's top level, and the pictures."""
    outside = [
        *PAGES.items(),
        *((f"screenshots/{p.name}", f"screenshots/{p.name}") for p in sorted((ROOT / "screenshots").glob("*.svg"))),
    ]
    for path, target in outside:
        files.append(File.generated(config, target, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    source = next((path for path, target in PAGES.items() if target == page.file.src_uri), f"docs/{page.file.src_uri}")

    def link(match: re.Match[str]) -> str:
        mark, text, link_target = match.groups()
        target, _, anchor = link_target.partition("#")
        if "://" in target or not target:
            return match[0]
        place = _in_site(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        if place is None or files.get_file_from_path(place) is None:
            return text  # a file of the repository that is no page
        relative = posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, markdown)
