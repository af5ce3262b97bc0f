"""How grave a risk is, in a sign, a word and a role: nobody has to see colours to tell them apart."""

from whisper_tui.model.verdict import GRAVE, Risk, is_grave
from whisper_tui.tui.spans import Line, Role, Span

__all__ = ["GRAVE", "is_grave", "risk_line", "risk_role", "risk_sign"]


def risk_role(risk: Risk) -> Role:
    """The role of everything that is said about a risk."""
    return "bad" if is_grave(risk) else "risk"


def risk_sign(risk: Risk) -> str:
    """Two signs for a grave one, one for any other."""
    return "▲▲" if is_grave(risk) else "▲"


def risk_line(risks: tuple[Risk, ...]) -> Line:
    """The gravest risk in a few words, and how many there are besides."""
    if not risks:
        return (Span("no risk seen", "muted"),)
    first = next((risk for risk in risks if is_grave(risk)), risks[0])
    more = f" +{len(risks) - 1}" if len(risks) > 1 else ""
    return (Span(f"{risk_sign(first)} {first.id.replace('-', ' ')}{more}", risk_role(first)),)
