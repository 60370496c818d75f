"""
What an admin call takes beside its body: a query read strictly, an idempotency key in both of its spellings.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

from verifier.action import read_idempotency_key

from .admin_problems import ADMIN_PROBLEMS
from .problems import ProblemRaised

__all__ = ["read_key", "read_numbers"]

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_MAX_PARAMETERS: Final = 8


def read_key(values: Sequence[str], *, is_required: bool) -> str | None:
    """
    Read the key of a call from every `Idempotency-Key` value of a request (D12, D17); None when there is none.

    Raises:
        ProblemRaised: 400 for a key that is missing and needed, malformed, or there twice.
    """
    if not values and not is_required:
        return None
    if not values:
        raise ProblemRaised(ADMIN_PROBLEMS["idempotency-key-missing"])
    key = read_idempotency_key(values[0]) if len(values) == 1 else None
    if key is None:
        raise ProblemRaised(ADMIN_PROBLEMS["idempotency-key-malformed"])
    return key


def read_numbers(query: bytes, names: Sequence[str]) -> dict[str, int]:
    """
    Read a query whose parameters are all numbers.

    Raises:
        ProblemRaised: 400 for a parameter that is not one of *names*, occurs twice, or is no number of up to 16 digits.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query), max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"]) from None
    found = dict(pairs)
    if len(found) != len(pairs) or not found.keys() <= set(names):
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"], detail=f"The query takes, once each: {', '.join(names)}.")
    if not all(_NUMBER.fullmatch(value) for value in found.values()):
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"], detail="A parameter of the query is no number.")
    return {name: int(value) for name, value in found.items()}
