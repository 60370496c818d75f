"""
What can go wrong when a ring is put in the place of another one; the tree stands in `errors`. Nothing was changed then.
"""

from .store_errors import StoreError

__all__ = ["NameTaken", "RingOlder", "RingUnrelated"]


class NameTaken(StoreError):
    """
    Raised when there is something already under the name that a ring is to be set aside as.
    """

    code = "name_taken"

    def __init__(self, *, where: str, name: str) -> None:
        super().__init__(f"{where} is not set aside: there is something of the name {name}. Take another label.")
        self.where = where
        self.name = name


class RingOlder(StoreError):
    """
    Raised when a ring that is to be put in place is older than the stored one, or than the audit trail knows of.

    It may hold a key that has been revoked since, and would bring it back.
    """

    code = "ring_older"

    def __init__(self, *, where: str, found: int, known: int) -> None:
        super().__init__(
            f"The ring for {where} is of revision {found}, but revision {known} is known. Take a later backup."
        )
        self.where = where
        self.found = found
        self.known = known


class RingUnrelated(StoreError):
    """
    Raised when a ring that is to be put in place is not one that the stored ring has become.
    """

    code = "ring_unrelated"

    def __init__(self, *, where: str, found: int, stored: int) -> None:
        super().__init__(
            f"{where} holds another ring, at revision {stored}, than the one of revision {found} that shall take its place: "
            "their keys are not the same. It is not replaced; set it aside first if it is not wanted any more."
        )
        self.where = where
        self.found = found
        self.stored = stored
