"""
A fetch on its way, as its waiters see it.
"""

from verifier.flight import Flight


def test_a_flight_of_another_process_is_left_alone():
    """
    In the child of a fork, the parent's flight is lost, and releasing its waiters is the parent's business.
    """
    flight = Flight(number=1, headers={}, began_at=0, wall_clock=0, loop=None, pid=-1)

    flight.land()

    assert flight.is_lost()
    assert not flight.done.done()


def test_landing_twice_is_landing():
    """
    A flight that ends while its waiters give up on it ends once.
    """
    flight = Flight(number=1, headers={}, began_at=0, wall_clock=0, loop=None)

    flight.land()
    flight.land()

    assert flight.done.done()
    assert not flight.done.cancel()
