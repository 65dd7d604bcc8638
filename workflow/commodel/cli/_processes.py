"""Processes of a layout on a platform: where each sits, and of which kind it is."""

from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.patterns.layouts import place, processes_of, ranks_of
from commodel.patterns.points import Setting, full_layout
from commodel.plan.config import find, load_platform
from commodel.platforms.platform import Platform


@dataclass(frozen=True, eq=False)
class Located:
    platform: Platform
    layout: str  # with everything filled in
    node: np.ndarray
    kinds: list[str]


def located(spec: str, platform: str, ranks: int | None) -> Located:
    file = find("platform", platform)
    loaded = load_platform(file)
    setting = Setting.of(file.stem, loaded)
    ranks = ranks or ranks_of(spec)
    if ranks is None:
        raise UserError(f"'{spec}' does not say how many ranks there are; wanted --ranks")
    placed = full_layout(setting, spec, ranks)
    if placed.misfit:
        raise UserError(f"{ranks} ranks as {placed.misfit}")
    kinds = processes_of(placed.layout, ranks, dict(setting.types))
    return Located(loaded, placed.layout, place(placed.layout, ranks), kinds)
