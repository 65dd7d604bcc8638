"""Where the nodes of a batch hang and what its processors share, for its provenance: what was measured holds there."""

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.measure.starts import Rig
from commodel.platforms import cores


def places(rig: Rig) -> dict[str, object]:
    """`nodes` are the names of the plan's nodes, in its order; `levels` has a group number for each of them, and
    `processors` for each processor of the machine that the driver runs on."""
    about: dict[str, object] = {"nodes": list(rig.names)} if rig.names else {}
    if not rig.how.simulated and (processors := cores.levels().settings):
        about["processors"] = processors
    try:
        levels = _levels(rig).settings
    except UserError as error:
        return about | {"levels_unknown": error.message}
    return about | ({"levels": levels} if levels else {})


def _levels(rig: Rig) -> Hierarchy:
    """What the platform file says goes before what the site says."""
    if rig.platform.levels or not (rig.how.levels and rig.names):
        return rig.platform.hierarchy
    return rig.how.levels(rig.starter, rig.names)
