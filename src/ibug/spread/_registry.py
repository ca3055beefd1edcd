"""The quantities by name."""

from __future__ import annotations

from ibug.spread._quantity import Quantity
from ibug.spread._residuals import Residuals
from ibug.spread._targets import Targets

QUANTITIES: dict[str, Quantity] = {quantity.name: quantity for quantity in (Targets(), Residuals())}
