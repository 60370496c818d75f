"""
What counts as an answer of a store, whoever asks it.
"""

import pytest

from issuer.errors import TokenRefused
from issuer.store_answers import CannotTell, answered, cannot_tell, is_first_use

pytestmark = pytest.mark.anyio

USED = ("https://id.example.com", "orc_main", "jti-1")
TIMES = {"expires_at": 1_796_040_060, "issued_at": 1_796_040_000.5}


class Ids:
    """
    A store that gives one answer, or raises it, and keeps what it was asked.
    """

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def use(self, *asked):
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [True, False])
async def test_true_is_a_first_use_and_false_is_none(answer):
    """
    A store is asked once, about the identifier in its scope and both of its times.
    """
    ids = Ids(answer)

    assert await is_first_use(ids, *USED, **TIMES) is answer
    assert ids.asked == [(*USED, 1_796_040_060, 1_796_040_000.5)]


@pytest.mark.parametrize("answer", [None, 1, 0, "True", b"1", [], OSError("secret"), KeyError()], ids=repr)
async def test_nothing_else_tells(answer):
    """
    What only looks true or false is neither, and an exception is named by its class alone.
    """
    with pytest.raises(CannotTell) as caught:
        await is_first_use(Ids(answer), *USED, **TIMES)

    assert caught.value.problem == type(answer).__name__
    assert caught.value.__cause__ is None


async def test_a_store_that_fails_is_a_refusal_that_says_so():
    """
    503 with the reason of whoever asked, and the class of what failed for the log.
    """

    async def failing():
        raise OSError("secret")

    with pytest.raises(TokenRefused) as caught:
        await answered(failing(), reason="limits:cannot_tell")

    refused = caught.value
    assert (refused.error, refused.status, refused.reason) == ("temporarily_unavailable", 503, "limits:cannot_tell")
    assert (refused.problem, refused.__cause__) == ("OSError", None)
    assert cannot_tell(CannotTell("KeyError"), reason="x").problem == "KeyError"
