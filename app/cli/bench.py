"""``stoa bench``: what the service costs over what it is built on."""

from __future__ import annotations

import typer

application = typer.Typer(help="Measure Stoa on this machine.", no_args_is_help=True)
