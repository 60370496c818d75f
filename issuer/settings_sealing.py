"""
What the configuration says about keys: where the rings lie, what opens them, how long readers may keep a key set.
"""

from pathlib import Path

from keys import KeysError, KeyTimes, SealingKey, SealingKeys, read_sealing_key

from .redis_url import RedisAddress, parse_redis_url
from .settings_models import Settings
from .settings_problems import Finding

__all__ = ["key_times", "keys_redis", "load_sealing_keys", "ring_path", "spill_path", "trail_path"]


def ring_path(settings: Settings, workspace_name: str) -> Path:
    """
    Return where the sealed ring of a workspace lies in the data folder.
    """
    return settings.data_dir / "rings" / f"{workspace_name}.jwe"


def trail_path(settings: Settings, workspace_name: str) -> Path:
    """
    Return where the audit trail of a workspace lies in the data folder.
    """
    return settings.data_dir / "audit" / f"{workspace_name}.jsonl"


def spill_path(settings: Settings, workspace_name: str) -> Path:
    """
    Return where the data folder keeps what could not be put into the audit trail of a workspace.
    """
    return settings.data_dir / "audit" / f"{workspace_name}.spilled.jsonl"


def keys_redis(settings: Settings) -> RedisAddress | None:
    """
    Return the Redis that has the key rings, or None when they lie in the data folder.
    """
    url = settings.keys_redis_url.get_secret_value() or settings.redis_url.get_secret_value()
    return parse_redis_url(url) if url else None


def key_times(settings: Settings) -> KeyTimes:
    """
    Return the waiting times of keys that follow from how long readers may keep a key set.

    They hold for what is decided from now on, together with what the ring says about how it was served; instants that are
    already stored on keys stay as they are.
    """
    return KeyTimes(max_age_s=settings.jwks.max_age_s, stale_if_error_s=settings.jwks.stale_if_error_s)


def load_sealing_keys(settings: Settings) -> SealingKeys:
    """
    Read the sealing keys from their files, which only the user of the service may be able to read.

    Raises:
        SettingsError: with everything that is wrong: a file that is missing, readable by others or no sealing key, or the same
            key in two files.
    """
    read: list[SealingKey] = []
    findings: list[Finding] = []
    for at, each in enumerate(settings.sealing_keys):
        try:
            read.append(read_sealing_key(each.id, each.file))
        except KeysError as error:
            findings.append((("sealing_keys", at, "file"), str(error)))
    if findings:
        raise settings.source.error(findings)
    try:
        return SealingKeys(*read)
    except ValueError as error:
        raise settings.source.error([(("sealing_keys",), str(error))]) from None
