"""Textual's style sheet with two memos, without which the cockpit spends half of its start on matching rules."""

from typing import ClassVar

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation
from textual.dom import DOMNode

PARSED = 512
"""Parsed files that are kept: those of about ten themes."""


class CockpitStylesheet(Stylesheet):
    """A style sheet that applies the same rules as Textual's, and finds them sooner.

    Textual looks through all rules for each node and each component class of it, and parses all files again when a
    dialog brings one more.
    """

    _parsed: ClassVar[LRUCache[tuple[object, ...], list[RuleSet]]] = LRUCache(PARSED)
    """The rules of each file with each theme. Rules are not changed once they are parsed."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._theme = frozenset(self._variables.items())
        self._selected: dict[frozenset[str], _SelectedRules] = {}
        self._selected_from: list[RuleSet] = []

    def set_variables(self, variables: dict[str, str]) -> None:
        """Use the variables of another theme."""
        super().set_variables(variables)
        self._theme = frozenset(variables.items())

    def _parse_rules(
        self,
        css: str,
        read_from: CSSLocation,
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        key = (self._theme, css, read_from, is_default_rules, tie_breaker, scope)
        if (known := self._parsed.get(key)) is not None:
            return known
        rules = super()._parse_rules(css, read_from, is_default_rules, tie_breaker, scope)
        self._parsed[key] = rules
        return rules

    def reparse(self) -> None:
        """Parse what is not parsed yet; after an error the rules from before stay."""
        self.parse()

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[tuple, RulesMap] | None = None) -> None:  # type: ignore[type-arg]
        """Apply the rules to a node."""
        if self._selected_from is not self.rules:
            self._selected_from = self.rules
            self._selected.clear()
        # Only names that occur in a rule: toasts have an id each, and there is no end of them.
        names = frozenset(self.rules_map.keys() & node._selector_names)
        selected = self._selected.get(names)
        if selected is None:
            selected = self._selected[names] = _SelectedRules(self, names)
        selected.apply(node, animate=animate, cache=cache)


class _SelectedRules(Stylesheet):
    """The rules of a sheet that nodes of certain names, classes and ids can match, in the order of the sheet."""

    def __init__(self, whole: CockpitStylesheet, names: frozenset[str]) -> None:
        super().__init__()
        self._whole = whole
        self._rules = [rule for rule in whole.rules if not names.isdisjoint(rule.selector_names)]

    @classmethod
    def replace_rules(cls, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
        """Set the styles of a node, where they differ from those that it has."""
        if node.styles.base.get_rules() != rules:
            super().replace_rules(node, rules, animate)
        elif not animate:
            node.notify_style_update()

    def _process_component_classes(self, node: DOMNode) -> None:
        self._whole._process_component_classes(node)
