"""Textual's style sheet with memos, without which the cockpit spends half of its start on matching rules."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation
from textual.dom import DOMNode

PARSED = 512
"""Parsed files that are kept: those of about ten themes."""

SELECTIONS = 2048
"""Selections of rules that are kept: a theme has about 150."""

PLACES = 256
"""Places in the tree whose styles a selection keeps, before it begins anew."""

Place = tuple[object, ...]
"""The properties of a node, and of all above it, that rules can depend on."""


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
        self._of_components: dict[frozenset[str], tuple[str, ...]] = {}
        self._components_at: WeakKeyDictionary[DOMNode, Place] = WeakKeyDictionary()

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
            for memo in (self._selected, self._of_components, self._components_at):
                memo.clear()
        # Only names that occur in a rule: toasts have an id each, and there is no end of them.
        names = frozenset(self.rules_map.keys() & node._selector_names)
        selected = self._selected.get(names)
        if selected is None:
            selected = self._selected[names] = _selected_rules(self.rules, names)
        selected.apply(node, animate=animate)
        self._process_component_classes(node)

    def _process_component_classes(self, node: DOMNode) -> None:
        components = node._get_component_classes()
        if not components:
            return
        asked = self._of_components.get(components)
        if asked is None:
            names = {"*", *(f".{name}" for name in components)}
            asked = _pseudo_classes(rule for rule in self.rules if not names.isdisjoint(rule.selector_names))
            self._of_components[components] = asked
        place = _place(node, asked)
        if self._components_at.get(node) != place or not node._component_styles:
            super()._process_component_classes(node)
            self._components_at[node] = place


class _SelectedRules(Stylesheet):
    """The rules of a sheet that nodes of certain names, classes and ids can match, in the order of the sheet.

    It does not style the components of a node.
    """

    def __init__(self, rules: list[RuleSet]) -> None:
        super().__init__()
        self._rules = rules
        self._asked = _pseudo_classes(rules)
        self._found: dict[Place, RulesMap | None] = {}
        self._computed: RulesMap | None = None

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[tuple, RulesMap] | None = None) -> None:  # type: ignore[type-arg]
        """Apply the rules to a node."""
        place = _place(node, self._asked)
        if place not in self._found:
            if len(self._found) == PLACES:
                self._found.clear()
            self._computed = None
            super().apply(node, animate=animate)
            self._found[place] = self._computed
            return
        node._has_hover_style = "hover" in self._asked
        node._has_focus_within = "focus-within" in self._asked
        node._has_order_style = not _ORDER.isdisjoint(self._asked)
        node._has_odd_or_even = not _PARITY.isdisjoint(self._asked)
        if (rules := self._found[place]) is not None:
            self.replace_rules(node, rules, animate)

    def replace_rules(self, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:  # type: ignore[override]
        """Set the styles of a node, where they differ from those that it has."""
        self._computed = rules
        if node.styles.base.get_rules() != rules:
            super().replace_rules(node, rules, animate)
        elif not animate:
            node.notify_style_update()

    def _process_component_classes(self, node: DOMNode) -> None:
        pass


_ORDER = frozenset({"first-of-type", "last-of-type", "first-child", "last-child", "empty"})
_PARITY = frozenset({"odd", "even"})
_selections: LRUCache[tuple[int, ...], _SelectedRules] = LRUCache(SELECTIONS)


def _selected_rules(rules: list[RuleSet], names: frozenset[str]) -> _SelectedRules:
    selected = [rule for rule in rules if not names.isdisjoint(rule.selector_names)]
    # A selection keeps its rules alive, so that their ids stay theirs.
    key = tuple(map(id, selected))
    if (known := _selections.get(key)) is not None:
        return known
    made = _selections[key] = _SelectedRules(selected)
    return made


def _pseudo_classes(rules: Iterable[RuleSet]) -> tuple[str, ...]:
    return tuple(sorted({name for rule in rules for name in rule.pseudo_classes}))


def _place(node: DOMNode, asked: tuple[str, ...]) -> Place:
    """Return what rules that ask for these pseudo-classes can tell apart: two nodes of one place have one style."""
    above: list[object] = []
    at: object = node
    while isinstance(at, DOMNode):
        above += (type(at), at._id, frozenset(at._classes))
        if asked:
            known: dict[str, Callable[[Any], bool]] = at._PSEUDO_CLASSES
            above += [name in known and known[name](at) for name in asked]
        at = at._parent
    return tuple(above)
