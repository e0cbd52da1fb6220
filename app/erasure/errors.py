"""What can come in the way of leaving. Codes are stable."""

from __future__ import annotations

from tenancy.errors import NotFound, ServiceUnavailable, StoaError


class ErasureNotFound(NotFound):
    """No erasure has this id."""

    code = "erasure_not_found"
    message = "There is no such erasure."


class ErasureNotConfigured(ServiceUnavailable):
    """Without keys an erasure could neither be kept nor proven, without its role not verified."""

    code = "erasure_not_configured"
    message = (
        "This service cannot erase anybody yet: its operator has to set STOA_SIGNING_KEYS and"
        " STOA_MAINTENANCE_DATABASE_URL."
    )


class TombstoneNotWritten(ServiceUnavailable):
    """The file by which an erasure is done again after a restore cannot be written."""

    code = "tombstone_not_written"
    message = "A file in STOA_TOMBSTONE_FOLDER cannot be written."


class TombstoneUnusable(StoaError):
    """A file by which an erasure would be done again cannot be read, or not without its key."""

    code = "tombstone_unusable"


class RowsLeft(StoaError):
    """Rows of somebody who leaves cannot be deleted: a fault of the schema's, or of its rules."""

    code = "rows_left"
    message = "Rows of a person who leaves cannot be deleted."


class ReceiptRefused(StoaError):
    """A receipt is none, or was changed, or nobody whose keys are known has signed it."""

    code = "receipt_refused"
    message = "This receipt does not verify."
