"""The documentation's pages, and what they name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
RECORDS = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md")
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(path for path in (ROOT / "README.md", ROOT / "CHANGELOG.md") if path.exists()),
]

_PATH = re.compile(
    r"`((?:app|tenancy|tests|deploy|docs|alembic|\.ci)/[\w./-]*|[\w.-]+\.(?:toml|lock))`"
)
_LINK = re.compile(r"\]\((?!https?:|#|\.\./\.\./commits)([^)#\s]+)")
_SETTING = re.compile(r"\bSTOA_[A-Z_]*[A-Z]\b")
_FUNCTION = re.compile(r"`((?:tenant|dispatch)\.\w+)(?:\(\))?`")


def text_of(page: Path) -> str:
    """What a page says, each paragraph on one line."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", page.read_text(encoding="utf-8"))


def paths_in(page: Path) -> set[str]:
    """The files and folders of the repository that a page names."""
    return set(_PATH.findall(text_of(page)))


def links_in(page: Path) -> set[str]:
    """Where a page's links to other pages lead."""
    return set(_LINK.findall(text_of(page)))


def settings_in(page: Path) -> set[str]:
    """The settings that a page names."""
    return set(_SETTING.findall(text_of(page)))


def functions_in(page: Path) -> set[str]:
    """The database functions that a page names."""
    return set(_FUNCTION.findall(text_of(page)))
