"""Plans without an experiment file."""

from dataclasses import replace

from commodel.records import Batch, Measure, Plan, PlannedPlatform

MEASURE = Measure("window", 0.02, 10, 500, 2.0, 1, 2, 60.0)


def planned(
    *batches: Batch, models: tuple[str, ...] = (), passes: int = 1, simulated: tuple[str, ...] = ()
) -> Plan:
    """Return the plan of experiment `e` on the platforms of its batches; `simulated` names the
    simulated platforms."""
    platforms = {
        batch.platform: PlannedPlatform(
            title=batch.platform,
            launcher="local",
            simulated=batch.platform in simulated,
            digest="d",
        )
        for batch in batches
    }
    return Plan(
        "e", "e", "d", 1, models, {}, replace(MEASURE, passes=passes), platforms, batches, "0"
    )
