"""Textual's style sheet with memos, without which the cockpit spends half of its start on matching rules."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from textual.cache import LRUCache
from textual.css.model import CombinatorType, RuleSet, Selector, SelectorType
from textual.css.styles import RenderStyles, RulesMap
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
        self._of_components: dict[frozenset[str], _Matched] = {}
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
        matched = self._of_components.get(components)
        if matched is None:
            names = {"*", *(f".{name}" for name in components)}
            rules = [rule for rule in self.rules if not names.isdisjoint(rule.selector_names)]
            matched = self._of_components[components] = _Matched(rules)
        place, before = matched.place_below(node), node._component_styles
        if self._components_at.get(node) != place or not isinstance(before, _ComponentStyles):
            node._component_styles = now = _ComponentStyles(self, node, components)
            self._components_at[node] = place
            if any(now[name] != styles for name, styles in before.items()):
                node.refresh()


class _ComponentStyles(dict[str, RenderStyles]):
    """The styles of the component classes of a node, each made when it is asked for first.

    A widget that prints text has more than thirty, and draws with a few of them.
    """

    def __init__(self, sheet: CockpitStylesheet, node: DOMNode, names: frozenset[str]) -> None:
        super().__init__()
        self._sheet, self._node, self._names = sheet, node, names

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __missing__(self, name: str) -> RenderStyles:
        if name not in self._names:
            raise KeyError(name)
        component = DOMNode(classes=name)
        component._attach(self._node)
        self._sheet.apply(component)
        made = self[name] = component.styles
        return made


class _SelectedRules(Stylesheet):
    """The rules of a sheet that nodes of certain names, classes and ids can match, in the order of the sheet.

    It does not style the components of a node.
    """

    def __init__(self, rules: list[RuleSet]) -> None:
        super().__init__()
        self._rules = rules
        self._asked, self._matched = {name for rule in rules for name in rule.pseudo_classes}, _Matched(rules)
        self._found: dict[Place, RulesMap | None] = {}
        self._computed: RulesMap | None = None

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[tuple, RulesMap] | None = None) -> None:  # type: ignore[type-arg]
        """Apply the rules to a node."""
        place = self._matched.place_of(node)
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


class _Matched:
    """The facts of a node and of those above it that some rules can tell apart: two nodes of one place have one style.

    The thirty roles of text ask for nothing above, so that they are matched once, and not again in each widget.
    """

    def __init__(self, rules: Iterable[RuleSet]) -> None:
        self._node, self._above = _Names(), _Names()
        for rule in rules:
            for each in rule.selector_set:
                names = self._node
                for selector in reversed(each.selectors):
                    names.add(selector)
                    if selector.combinator != CombinatorType.SAME:
                        names = self._above

    def place_of(self, node: DOMNode) -> Place:
        """Return the place of a node."""
        return self._node.known_of(node), self.place_below(node._parent)

    def place_below(self, node: object) -> Place:
        """Return what the rules can tell apart in a node and in those above it, for what is right below it."""
        place, above = list[object](), self._above
        while above and isinstance(node, DOMNode):
            place.append(above.known_of(node))
            node = node._parent
        return tuple(place)


class _Names:
    """The types, classes, ids and pseudo-classes for which selectors ask."""

    def __init__(self) -> None:
        self._types, self._classes, self._ids = set[str](), set[str](), set[str]()
        self._asked: list[str] = []
        self._any = False
        """True if a node without any of the names can have one of the pseudo-classes."""

    def __bool__(self) -> bool:
        return bool(self._types or self._classes or self._ids or self._asked)

    def add(self, selector: Selector) -> None:
        """Add those of one selector."""
        self._asked += sorted(selector.pseudo_classes.difference(self._asked))
        match selector.type:
            case SelectorType.TYPE:
                self._types.add(selector.name)
            case SelectorType.CLASS:
                self._classes.add(selector.name)
            case SelectorType.ID:
                self._ids.add(selector.name)
            case _:
                self._any |= bool(selector.pseudo_classes)

    def known_of(self, node: DOMNode) -> object:
        """Return which of them a node has. None: the selectors pass over it."""
        types, classes = self._types & node._css_type_names, self._classes & node._classes
        id_ = node._id if node._id in self._ids else None
        if not (types or classes or id_ or self._any):
            return None
        known: dict[str, Callable[[Any], bool]] = node._PSEUDO_CLASSES
        has = tuple(name for name in self._asked if name in known and known[name](node))
        return frozenset(types), frozenset(classes), id_, has
