"""``stoa admin reconcile``: one pass over what dead processes left, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from app.admin.acts import acts
from app.databases import dispatch_settings
from app.sharing import default_limits
from app.tools.stdio.records import left_children
from tenancy.database.roles import assert_role
from tenancy.reconcile.passing import reconcile

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.acts import Act
    from tenancy.reconcile.summary import Finding, Summary


async def reconcile_once(settings: Settings, act: Act, *, dry_run: bool) -> Summary:
    """One pass; with ``dry_run`` only what it would do. Either is on record.

    Raises:
        WrongRole: the dispatch role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    dispatch = dispatch_settings(settings)
    await assert_role(dispatch, reads_content=False)
    async with acts(settings) as record:
        await (record.looked(act) if dry_run else record.did(act, "reconciled"))
    return await reconcile(
        dispatch,
        limits=default_limits(settings),
        cooldown_seconds=settings.seat_cooldown_seconds,
        children=left_children(settings.mcp_folder),
        dry_run=dry_run,
    )


def findings_table(summary: Summary) -> Table:
    """What was found, and what became, or would become, of it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kind", "id", "found", "liveness", "disposition", "why"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for finding in summary.findings:
        verdict = finding.verdict
        table.add_row(
            finding.kind,
            str(finding.id),
            verdict.found or "as written",
            verdict.liveness,
            verdict.disposition,
            _why(finding),
        )
    return table


def outcome_line(summary: Summary) -> str:
    """The pass in one sentence."""
    if summary.failures:
        return f"{len(summary.failures)} could not be taken back: try again, or see the reasons."
    if not summary.changed:
        return "Nothing to do."
    return "Nothing was changed: this was a dry run." if summary.dry_run else "Done."


def _why(finding: Finding) -> str:
    said = finding.verdict.why
    if finding.disagreement is not None:
        said = f"{finding.disagreement.replace('_', ' ')}: {said}"
    return said if finding.error is None else f"{said} ({finding.error})"
