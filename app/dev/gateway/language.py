"""Which of the page's languages a browser prefers."""

from __future__ import annotations

from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "de"]


def preferred_language(accept_language: str) -> Language:
    """Return German if it is wanted more than English, which is the default."""
    wanted: dict[str, float] = {}
    for part in accept_language[:1000].split(","):
        tag, _, parameter = part.strip().partition(";")
        language = tag.strip().lower().partition("-")[0]
        wanted[language] = max(wanted.get(language, 0.0), _weight(parameter))
    return "de" if wanted.get("de", 0.0) > wanted.get("en", 0.0) else "en"


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
