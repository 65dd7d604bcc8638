"""Processes of a layout on a platform: where each sits, and of which kind it is."""

from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.patterns.layouts import place, processes_of, ranks_of
from commodel.patterns.placed import Placed, full_layout
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.plan.setting import setting_of
from commodel.platforms.platform import Platform


@dataclass(frozen=True, eq=False)
class Located:
    platform: Platform
    layout: str  # with everything filled in
    node: np.ndarray
    kinds: list[str]


def filled_in(setting: Setting, spec: str, ranks: int | None) -> tuple[Placed, int]:
    """A layout in full, and its ranks, which it may say itself."""
    if (ranks := ranks or ranks_of(spec)) is None:
        raise UserError(f"'{spec}' does not say how many ranks there are; wanted --ranks")
    return full_layout(setting, spec, ranks).checked(ranks), ranks


def located(spec: str, platform: str, ranks: int | None) -> Located:
    loaded = load_platform(find("platform", platform))
    setting = setting_of(loaded)
    placed, ranks = filled_in(setting, spec, ranks)
    kinds = processes_of(placed.layout, ranks, dict(setting.types))
    return Located(loaded, placed.layout, place(placed.layout, ranks), kinds)
