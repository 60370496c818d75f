"""
One service to a data folder.
"""

import pytest

from issuer.single_process import AlreadyServed, served_alone


def test_a_second_service_on_one_folder_is_refused(tmp_path):
    """
    Two processes that do not know of each other's state are never let at one folder.
    """
    with served_alone(tmp_path), pytest.raises(AlreadyServed), served_alone(tmp_path):
        pytest.fail("the folder was handed out twice")


def test_the_folder_is_free_again_afterwards(tmp_path):
    """
    Whatever ended the first service, the next one starts; nothing is left in the folder.
    """
    with pytest.raises(ZeroDivisionError), served_alone(tmp_path):
        raise ZeroDivisionError

    with served_alone(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_only_be_read_is_served(tmp_path):
    """
    Serving needs no right to write.
    """
    tmp_path.chmod(0o500)

    with served_alone(tmp_path):
        assert tmp_path.is_dir()


def test_a_missing_folder_is_named(tmp_path):
    """
    The message names the folder that is not there.
    """
    with pytest.raises(AlreadyServed) as refused, served_alone(tmp_path / "none"):
        pytest.fail("there is no such folder")

    assert "none" in str(refused.value)
