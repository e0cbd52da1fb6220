"""``stoa worker``: one worker process."""

from __future__ import annotations

from app.cli.turn import Turn, TurnSocket


def command(turn_socket: TurnSocket = None) -> None:
    """Execute runs. Any number may run beside each other."""
    from app.cli.process import ended_by_force, importing, run

    with importing():
        from app.settings import Settings, load_settings
        from app.worker.process import run_worker

    turn = Turn(turn_socket)
    settings = load_settings()
    turn.wait()

    async def serve(loaded: Settings) -> None:
        with ended_by_force() as force:
            await run_worker(loaded, turn.ready, force)

    run(settings, serve)
