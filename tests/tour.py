"""The moving picture of the README: some of the pictures one after the other, each with a sentence, as one SVG."""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

FADE_S = 0.3
CAPTION_PX = 64
"""Height of the strip below the screen, in units of the pictures."""


@dataclass(frozen=True)
class Scene:
    """A picture of screenshots/, by name, what is said about it, and for how many seconds it is shown."""

    picture: str
    caption: str
    seconds: float = 4.0


TOUR = (
    Scene("waiting", "Every command of every agent waits in one queue, with its risks.", 5.0),
    Scene("effects", "The card states what it would change, with the diff, without running anything.", 5.0),
    Scene("edit", "Change a command before it runs …"),
    Scene("deny", "… or deny it, with a reason that the agent reads word for word."),
    Scene("running", "What you approve runs under supervision, with live output."),
    Scene("left-behind", "What a command leaves in the background stays watched."),
    Scene("rules", "Rules and standing approvals decide what you do not want to be asked again."),
    Scene("history", "Nothing that ran is lost: search it, replay it, export it.", 5.0),
)


def keyframes(index: int) -> str:
    """CSS that shows one scene of the tour in its turn."""
    total = sum(scene.seconds for scene in TOUR)
    start = sum(scene.seconds for scene in TOUR[:index])
    end = start + TOUR[index].seconds
    visible = [(max(start - FADE_S, 0.0), 1 if index == 0 else 0), (start, 1), (end - FADE_S, 1), (end, 0), (total, 0)]
    if index == 0:
        visible[-1:] = [(total - FADE_S, 0), (total, 1)]
    else:
        visible.insert(0, (0.0, 0))
    steps = "".join(f"{100 * at / total:.2f}%{{opacity:{opacity}}}" for at, opacity in visible)
    still = 1 if index == 0 else 0  # what a viewer without animation shows
    animation = f"opacity:{still};animation:scene{index} {total:g}s linear infinite"
    return f"@keyframes scene{index}{{{steps}}}.scene{index}{{{animation}}}"


def moving_picture(pictures: dict[str, str]) -> str:
    """One SVG of the pictures that the tour names (SVG texts of one size, by name)."""
    match = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', pictures[TOUR[0].picture])
    assert match is not None, "a picture has no size"
    width, height = float(match[1]), float(match[2])
    scenes = []
    for index, scene in enumerate(TOUR):
        nested = pictures[scene.picture].replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
        caption = (
            f'<text class="caption" x="{width / 2}" y="{height + CAPTION_PX * 0.62}">{escape(scene.caption)}</text>'
        )
        scenes.append(f'<g class="scene{index}">{nested}{caption}</g>')
    style = "".join(keyframes(index) for index in range(len(TOUR)))
    style += ".caption{font:600 26px system-ui,sans-serif;text-anchor:middle;fill:#7f8ea3}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + CAPTION_PX}">'
        f"<style>{style}</style>{''.join(scenes)}</svg>\n"
    )


def draw(folder: Path) -> None:
    """Write tour.svg beside the pictures that it is made of."""
    pictures = {scene.picture: (folder / f"{scene.picture}.svg").read_text(encoding="utf-8") for scene in TOUR}
    (folder / "tour.svg").write_text(moving_picture(pictures), encoding="utf-8")
