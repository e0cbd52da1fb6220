"""Fixtures for every test: each is made only when a test asks for it."""

from __future__ import annotations

pytest_plugins = ["tests.support.tenancy"]
