"""``stoa dev``: everything on one machine, as real processes that end together."""

from app.dev.supervisor.run import run_development as run_development
