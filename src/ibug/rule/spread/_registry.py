"""The quantities by name."""

from __future__ import annotations

from ibug.rule.spread._quantity import Quantity
from ibug.rule.spread._residuals import Residuals
from ibug.rule.spread._targets import Targets

QUANTITIES: dict[str, Quantity] = {quantity.name: quantity for quantity in (Targets(), Residuals())}
