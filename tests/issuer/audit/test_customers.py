"""
What stands for a customer in the trail and in logs.
"""

from issuer.audit import customer_hash

from .stage import NEW, OLD


def test_a_customer_has_one_pseudonym():
    """
    The same each time, for everybody who has the key.
    """
    assert customer_hash(NEW, "acme", "cus_1") == customer_hash(NEW, "acme", "cus_1")
    assert customer_hash(NEW, "acme", "cus_1").startswith("cus_")
    assert len(customer_hash(NEW, "acme", "cus_1")) == 26


def test_a_pseudonym_depends_on_everything():
    """
    Another customer, workspace or sealing key has another one.
    """
    pseudonyms = {
        customer_hash(key, workspace, sub)
        for key in (NEW, OLD)
        for workspace in ("acme", "globex")
        for sub in ("1", "2", "", "ü", "\ud800")
    }

    assert len(pseudonyms) == 20
