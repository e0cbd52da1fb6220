"""A build of ``stoa`` that fails where a test says so.

``python -m tests.support.faulty worker`` is ``stoa worker``, but reads ``FAULT_AT`` and arms
:mod:`app.faults` with it. The shipped program has nothing that reads it.
"""
