"""
What the configuration says about keys: sealing keys, the place of rings, and the waiting times.
"""

import time

import pytest

from issuer.init_config import write_development_config
from issuer.settings import SettingsError, load_settings
from issuer.settings_sealing import key_times, keys_redis, load_sealing_keys, ring_path


@pytest.fixture
def config(tmp_path):
    return write_development_config(tmp_path, now=int(time.time())).config


def load(config, *edits):
    text = config.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")
    return load_settings(config, {})


def test_sealing_keys_are_read_in_order(config):
    """
    The first key of the configuration is the one that seals.
    """
    settings = load(config)

    assert load_sealing_keys(settings).ids == (settings.sealing_keys[0].id,)


@pytest.mark.parametrize(
    "spoil",
    [lambda file: file.unlink(), lambda file: file.chmod(0o640), lambda file: file.write_text("short")],
    ids=["missing", "readable by others", "no key"],
)
def test_a_sealing_key_that_cannot_be_used_stops_the_start(config, spoil):
    """
    The problem names the setting, its line and what to do, and nothing of the file.
    """
    spoil(config.parent / "sealing.key")

    with pytest.raises(SettingsError) as caught:
        load_sealing_keys(load(config))

    (problem,) = caught.value.problems
    line = config.read_text(encoding="utf-8").split("\n")[problem.line - 1]
    assert problem.where == "sealing_keys[0].file"
    assert line.startswith('file = "sealing.key"')
    assert "short" not in str(caught.value)


def test_one_sealing_key_under_two_ids_stops_the_start(config):
    """
    The same key twice is a mistake: nothing would be gained by taking the first away.
    """
    settings = load(config, ("[[workspaces]]", '[[sealing_keys]]\nid = "b"\nfile = "sealing.key"\n[[workspaces]]'))

    with pytest.raises(SettingsError) as caught:
        load_sealing_keys(settings)

    assert [each.where for each in caught.value.problems] == ["sealing_keys"]


def test_rings_lie_in_the_data_folder(config):
    """
    The ring of a workspace has the name of the workspace.
    """
    settings = load(config)

    assert ring_path(settings, "demo") == config.parent / "data" / "rings" / "demo.jwe"
    assert ring_path(settings, "demo").is_file()


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ("", None),
        ('redis_url = "redis://db"', "redis://db:6379"),
        ('keys_redis_url = "redis://keys"', "redis://keys:6379"),
        ('redis_url = "redis://db"\nkeys_redis_url = "redis://keys"', "redis://keys:6379"),
    ],
)
def test_rings_have_a_redis_of_their_own_where_one_is_named(config, lines, where):
    """
    Otherwise that of everything else, and the data folder where there is none.
    """
    address = keys_redis(load(config, ("[[sealing_keys]]", f"{lines}\n[[sealing_keys]]")))

    assert (address and address.where) == where


def test_waiting_times_follow_from_the_cache_times(config):
    """
    How long readers may keep a key set decides how long a standby must wait: 350 s with the defaults.
    """
    default = key_times(load(config))
    shorter = key_times(
        load(config, ("[[sealing_keys]]", "[jwks]\nmax_age_s = 60\nstale_if_error_s = 0\n[[sealing_keys]]"))
    )

    assert (default.maturity_s, default.retirement_s) == (350, 140)
    assert (shorter.max_age_s, shorter.stale_if_error_s) == (60, 0)
    assert shorter.maturity_s == 170
