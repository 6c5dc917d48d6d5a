"""Running means and sums of squares of pairs, without storing the pairs."""

from __future__ import annotations

import attrs


@attrs.define
class Moments:
    """Means of pairs (x, y), with the sums of squares and of products about them.

    B. P. Welford, Technometrics 4 (1962), 419-420: a constant has a sum of squares of exactly 0. *times* weighs a pair.
    """

    count: float = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float = 0.0, times: float = 1) -> None:
        """Add a pair."""
        self.count += times
        share = times / self.count
        dx, dy = x - self.x, y - self.y
        self.x += dx * share
        self.y += dy * share
        self.xx += times * dx * (x - self.x)
        self.yy += times * dy * (y - self.y)
        self.xy += times * dx * (y - self.y)

    def slope(self) -> float:
        """Return the slope of the regression of y on x; 0 if x does not vary."""
        return self.xy / self.xx if self.xx > 0 else 0.0

    def residual_squares(self, slope: float) -> float:
        """Return the sum of squares of ``y - slope * x`` about its mean."""
        return max(0.0, self.yy - 2 * slope * self.xy + slope * slope * self.xx)
