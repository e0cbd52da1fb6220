"""Who acts as an operator, and by what way: what goes on record with everything that they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenancy.principal import UserId


@dataclass(frozen=True, slots=True)
class Act:
    """Something that an operator does: over HTTP a person, on the command line an account."""

    route: str
    """What is called, with names for values: ``PUT /admin/plans/{plan}``, ``stoa admin pools``."""
    by: UserId | None = None
    account: str | None = None
    """The operating system's, where no person is known."""

    @property
    def arguments(self) -> tuple[UserId | None, str | None, str]:
        """The last three arguments of every function by which operators change something."""
        return (self.by, self.account, self.route)
