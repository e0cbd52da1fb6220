"""``stoa``: the entry point."""

from __future__ import annotations

import os
import sys

import typer

from app.cli import admin, bench, dev, gateway, migrate, model, settings, web, worker
from app.cli.failures import exit_status

application = typer.Typer(
    name="stoa",
    help="Stoa, a hosted multi-tenant agent service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, module in (
    ("dev", dev),
    ("web", web),
    ("worker", worker),
    ("migrate", migrate),
    ("gateway", gateway),
    ("model", model),
    ("settings", settings),
):
    application.command(name)(module.command)
application.add_typer(admin.application, name="admin")
application.add_typer(bench.application, name="bench")


def main() -> None:
    """Run one command. Exits 0, 1 when it failed, 2 when a setting or option is wrong."""
    # Read by LangGraph when it is imported: without it a crafted row can call functions.
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
    try:
        application()
    except Exception as error:  # noqa: BLE001 - one that nobody knows is raised again
        sys.exit(exit_status(error))


if __name__ == "__main__":
    main()
