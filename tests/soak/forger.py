"""
Somebody who holds the private key of a ring that was stolen: mints tokens of their own and shows them to partners all the time.
"""

import asyncio
import secrets
from dataclasses import dataclass, field

from configuration import AUDIENCE
from estate import Estate, Presented
from traffic import Revoked

from issuer.orchestrator import sign_jwt
from keys import SigningKey

__all__ = ["Forger"]

# Behind the bound it goes on for so long, to see that nothing is accepted there.
BEYOND_S = 15


@dataclass
class Forger:
    """
    Uses *key* at every partner, every *pause_s* seconds by the fast clock, until nobody may trust it any more (see `revoked`).
    """

    estate: Estate
    key: SigningKey
    pause_s: float
    shown: list[Presented] = field(default_factory=list)
    revoked: Revoked | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for partner in range(len(self.estate.partners)):
                tasks.create_task(self._use(partner))

    async def _use(self, partner: int) -> None:
        while True:
            shown = await self.estate.present(partner, await self._token())
            self.shown.append(shown)
            # The last one is shown behind the bound however busy the machine is.
            if self.revoked is not None and shown.began > self.revoked.trusted_until + BEYOND_S:
                return
            await self.estate.clock.sleep(self.pause_s)

    async def _token(self) -> str:
        iat = int(self.estate.clock.now())
        claims = {
            "iss": self.estate.configured.issuer,
            "sub": "cus_victim",
            "aud": AUDIENCE,
            "client_id": "orc_main",
            "iat": iat,
            "exp": iat + 60,
            "jti": secrets.token_urlsafe(16),
            "acr": "high",
            "act": {"sub": "agt_support"},
            "auth_time": iat - 60,
            "scope": "orders:read",
        }
        return await sign_jwt("at+jwt", claims, self.key)

    def last_accepted(self) -> dict[int, float | None]:
        """
        Tell for each partner how many seconds after the revocation it accepted the last one; None when it accepted none at all.
        """
        accepted = {each.partner: each.began - self.revoked.at for each in self.shown if each.reason is None}
        return {partner: accepted.get(partner) for partner in range(len(self.estate.partners))}

    def after_bound(self) -> list[Presented]:
        """
        Return what was shown behind the bound.
        """
        return [each for each in self.shown if each.began > self.revoked.trusted_until]
