"""Drops what is kept for a while only.

``service``  looks for what is due at a steady pace, as long as the worker lives
``duties``   what is dropped: its kind, when it is due, which function drops it
``batches``  how: for each owner in batches, with pauses, so that nobody feels it
``tombstone_files``  what lies in a folder instead of the database
``meter``    what became of it, as metrics
"""

from app.worker.retention.service import Retention

__all__ = ["Retention"]
