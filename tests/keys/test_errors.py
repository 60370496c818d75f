"""
The error tree: drawn, complete, coded, and silent about secrets.
"""

import inspect
from pathlib import Path

import pytest

import keys
from keys import KeysError, errors, store_errors, transfer_errors

CLASSES = [
    value
    for module in (errors, store_errors, transfer_errors)
    for value in vars(module).values()
    if inspect.isclass(value) and issubclass(value, KeysError)
]
BASES = {"KeysError", "TransitionRefused", "SealingKeyError", "StoreError"}


def test_every_error_stands_in_the_tree_and_at_the_door():
    """
    The drawn tree names each class, and each can be imported from the package.
    """
    names = {error.__name__ for error in CLASSES}

    assert all(f" {name} " in errors.__doc__ for name in names)
    assert names <= set(keys.__all__)


def test_every_error_has_a_code_of_its_own():
    """
    Callers can tell errors apart without reading text.
    """
    codes = [error.code for error in dict.fromkeys(CLASSES)]

    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("name", sorted(BASES))
def test_a_base_is_never_raised(name):
    """
    The bases only group.
    """
    source = "".join(path.read_text() for path in Path(keys.__file__).parent.glob("*.py"))

    assert f"raise {name}" not in source


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.ActiveKeyMismatch(active="k1"), "k1"),
        (errors.StandbyNotMature(kid="k2", earliest=0), "1970-01-01T00:00:00Z"),
        (errors.TooManyRetiring(earliest=0), "1970-01-01T00:00:00Z"),
        (errors.ClockBehind(now=0, recorded=1), "1970-01-01T00:00:01Z"),
        (errors.IllegalTransition(kid="k", state="retired", unpublished_at=0), "retired"),
        (store_errors.RingMissing(where="ring.jwe", workspace="acme"), "customer-context keys init"),
        (store_errors.SealingKeyUnknown(where="ring.jwe", needed="old", configured=("new",)), "'old'"),
        (store_errors.SealingKeyWrong(where="ring.jwe", needed="old"), "`sealing_keys`"),
        (store_errors.LoosePermissions(path=Path("ring.jwe"), mode=0o644), "0644"),
        (store_errors.RevisionConflict(where="ring.jwe", expected=1, found=2), "revision 2"),
        (store_errors.RevisionConflict(where="ring.jwe", expected=0, found=2), "already holds"),
        (store_errors.FileUnwritable(path=Path("r"), problem="full", outcome="unchanged"), "untouched"),
        (store_errors.FileUnwritable(path=Path("r"), problem="full", outcome="unknown"), "Load it again"),
        (store_errors.StoreBusy(path=Path("r"), waited_s=10), "10 s"),
        (store_errors.StoreUnreachable(where="redis://r", problem="no answer", outcome="unknown"), "no answer"),
        (transfer_errors.RingOlder(where="ring.jwe", found=1, known=2), "revision 2"),
        (transfer_errors.RingUnrelated(where="ring.jwe", found=2, stored=1), "set it aside"),
    ],
)
def test_a_message_tells_what_the_reader_needs(error, said):
    """
    Each message names the thing, the instant or the command to go on with.
    """
    assert said in str(error)
