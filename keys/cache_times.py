"""
How long readers may keep a key set: kept with the ring, since caches go by what they were told and not by what is configured.

A ring says what its key set may be served with at most, so nothing is served that it does not count with. When that changes,
it also says until when sets that were served before may be in use; until then every decision counts with them too.
"""

from dataclasses import dataclass, replace
from typing import Self

from .timing import MAX_CACHE_S, KeyTimes, check_instant

__all__ = ["CacheTimes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTimes:
    """
    The cache times of one ring. Where nothing is known, they are the largest there are.

    Methods take `KeyTimes`: the times that are configured, of which the cache times count where they are larger.

    Attributes:
        max_age_s: the largest `max-age` that the key set of this ring is served with; 0 to 3600.
        stale_if_error_s: the largest `stale-if-error` that it is served with; 0 to 3600.
        earlier_until: until when a key set that was served with earlier cache times may be in use, by the clock of any instance
            (epoch seconds); 0 when there were none.

    Raises:
        TypeError: when a value is not an int.
        ValueError: when a value lies outside its bounds.
    """

    max_age_s: int = MAX_CACHE_S
    stale_if_error_s: int = MAX_CACHE_S
    earlier_until: int = 0

    def __post_init__(self) -> None:
        KeyTimes(max_age_s=self.max_age_s, stale_if_error_s=self.stale_if_error_s)
        check_instant(self.earlier_until, "earlier_until")

    @classmethod
    def first(cls, times: KeyTimes) -> Self:
        """
        Return those of a ring that was never served before.
        """
        return cls(max_age_s=times.max_age_s, stale_if_error_s=times.stale_if_error_s)

    def agree_with(self, times: KeyTimes) -> bool:
        """
        Tell whether they are the configured ones.
        """
        return (self.max_age_s, self.stale_if_error_s) == (times.max_age_s, times.stale_if_error_s)

    def changed(self, times: KeyTimes, *, at: int) -> Self:
        """
        Return the configured ones in the place of these from *at* on.

        Who has not seen the change yet serves by these for one more lease; from then on, what was served has to run out.
        """
        served = replace(times, max_age_s=self.max_age_s, stale_if_error_s=self.stale_if_error_s)
        return type(self)(
            max_age_s=times.max_age_s,
            stale_if_error_s=times.stale_if_error_s,
            earlier_until=max(at + served.maturity_s, self.in_use_until(times, at=at)),
        )

    def mature_at(self, times: KeyTimes, *, at: int) -> int:
        """
        Return from when on every verifier is sure to know a key that is first published at *at*.
        """
        return max(at + self._counted(times).maturity_s, self.in_use_until(times, at=at))

    def trusted_until(self, times: KeyTimes, *, at: int) -> int:
        """
        Return until when a conforming verifier may trust a key that is revoked at *at*, at worst.
        """
        return max(at + self._counted(times).revocation_bound_s, self.in_use_until(times, at=at))

    def in_use_until(self, times: KeyTimes, *, at: int) -> int:
        """
        Return until when a key set that was served with earlier cache times may be in use, as far as that can be at *at*.

        No set outlasts the largest times there are, so a change that was made by a clock that was far ahead does not count on.
        """
        largest = replace(times, max_age_s=MAX_CACHE_S, stale_if_error_s=MAX_CACHE_S)
        return min(self.earlier_until, at + largest.maturity_s)

    def _counted(self, times: KeyTimes) -> KeyTimes:
        return replace(
            times,
            max_age_s=max(times.max_age_s, self.max_age_s),
            stale_if_error_s=max(times.stale_if_error_s, self.stale_if_error_s),
        )
