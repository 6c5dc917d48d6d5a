"""Resource limits by the name of a profile."""

from __future__ import annotations

from typing import Literal

import attrs

from dicast import Limits

Profile = Literal["small", "medium", "large"]

_MB, _GB = 1024**2, 1024**3


def limits(profile: Profile, wall: float | None = None) -> Limits:
    """Return the limits of *profile*, with *wall* in place of its wall time.

    With *wall*, the limit on CPU time is *wall* times the number of CPUs.
    """
    defaults = _PROFILES[profile]
    return defaults if wall is None else attrs.evolve(defaults, wall=wall, cpu=wall * defaults.cpus)


_PROFILES = {
    "small": Limits(60, 60, 1, _GB, 64, 64 * _MB, 256 * _MB, 10 * _MB),
    "medium": Limits(120, 240, 2, 4 * _GB, 256, _GB, _GB, 10 * _MB),
    "large": Limits(300, 1200, 4, 8 * _GB, 1024, 8 * _GB, 8 * _GB, 100 * _MB),
}
