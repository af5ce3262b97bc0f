"""The cockpit's style sheet styles as Textual's does, and the footer keeps its keys."""

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widgets._footer import FooterKey

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import workday
from whisper_tui.tui.keyed_screen import KeyFooter
from whisper_tui.tui.screens.rules_screen import RulesScreen
from whisper_tui.tui.stylesheet import CockpitStylesheet


def styles(cockpit: Cockpit) -> list[tuple[str, str, dict[str, str]]]:
    """The styles of every node, and those of its component classes."""

    def components(node: DOMNode) -> dict[str, str]:
        return {name: node.get_component_styles(name).base.css for name in sorted(node._get_component_classes())}

    return [
        (str(node), node.styles.base.css, components(node)) for node in cockpit.app.screen.walk_children(with_self=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["", "d", "e", "H", "slash,r"])
async def test_every_node_has_the_styles_that_the_style_sheet_of_textual_gives_it(keys: str) -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press(*[key for key in keys.split(",") if key])
        sheet = cockpit.app.stylesheet
        assert isinstance(sheet, CockpitStylesheet)
        sheet.update(cockpit.app.screen)
        ours = styles(cockpit)
        plain = Stylesheet(variables=cockpit.app.get_css_variables())
        plain.source = sheet.source
        plain.parse()
        plain.update(cockpit.app.screen)
        assert ours == styles(cockpit)


@pytest.mark.slow
async def test_another_theme_restyles_every_node() -> None:
    async with open_cockpit(workday(), theme="whisper-dark") as cockpit:
        # A call with output: the panes of others are arranged as those of the call before.
        await cockpit.select("6")
        await cockpit.settled()
        dark = styles(cockpit)
        cockpit.app.use_theme("whisper-light")
        await cockpit.until(lambda: styles(cockpit) != dark)
        await cockpit.settled()
        light = styles(cockpit)
    async with open_cockpit(workday(), theme="whisper-light") as cockpit:
        await cockpit.select("6")
        await cockpit.until(lambda: [each[1:] for each in styles(cockpit)] == [each[1:] for each in light])


@pytest.mark.slow
async def test_the_footer_shows_the_keys_of_each_call_with_the_widgets_that_it_has() -> None:
    async with open_cockpit(workday(), size=(200, 60)) as cockpit:
        footer = cockpit.screen.query_one(KeyFooter)

        def shown() -> set[str]:
            return {key.description for key in footer.query(FooterKey) if key.display}

        most = set(footer.query(FooterKey))
        for call_id in ("7", "6", "2", "7", "6", "2", "7"):
            await cockpit.select(call_id)
            wanted = {each.binding.description for each in cockpit.screen.active_bindings.values() if each.binding.show}
            await cockpit.until(lambda wanted=wanted: shown() == wanted | {"More"})
            most |= set(footer.query(FooterKey))
        assert len(most) == len(footer.query(FooterKey))


@pytest.mark.slow
async def test_a_narrow_footer_shows_whole_keys_and_how_to_leave() -> None:
    async with open_cockpit(workday(), size=(80, 24)) as cockpit:
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen) and cockpit.app.screen.query(FooterKey))
        footer = cockpit.app.screen.query_one(KeyFooter)

        def shown() -> list[str]:
            return [key.description for key in footer.query(FooterKey) if key.display]

        await cockpit.until(lambda: shown()[-2:] == ["Back", "More"])
        assert "Test" in shown() and "Reload" not in shown()
        *keys, more = (key.region for key in footer.query(FooterKey) if key.display)
        assert all(key.right - 1 <= more.x for key in keys)
