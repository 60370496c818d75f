"""
Customers in the trail and in logs: a keyed hash of the id, by which a known customer is found and from which none is read.
"""

import hmac
from base64 import urlsafe_b64encode
from typing import Final

from keys import SealingKey

__all__ = ["customer_hash"]

_OCTETS: Final = 16


def customer_hash(sealing_key: SealingKey, workspace: str, sub: str) -> str:
    """
    Return the pseudonym of a customer of a workspace: `cus_` and 22 characters of base64url.

    It is another one under another sealing key: to find records from before, hash with the key that they were written under.
    """
    key = sealing_key.derive("audit-customer", workspace)
    digest = hmac.digest(key, sub.encode("utf-8", "surrogatepass"), "sha256")
    return "cus_" + urlsafe_b64encode(digest[:_OCTETS]).rstrip(b"=").decode("ascii")
