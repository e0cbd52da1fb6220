"""Runs ``stoa`` with a fault armed."""

from __future__ import annotations

from app import faults
from app.cli.main import main
from tests.support.faulty.fault import Fault

if __name__ == "__main__":
    faults.arm(Fault.from_environment().reach)
    main()
