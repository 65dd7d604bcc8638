"""Under which conditions points were measured that no probe and no model knows of: times that scatter, memory that a
computation may have used since, a machine that others were using, levels that a platform's file does not name, and
nodes that share what even the best family does not know."""

from collections.abc import Collection, Mapping

import pandas as pd

from commodel.compare.ranking import ranked
from commodel.compare.table import UNSTEADY, spreads, two_digits
from commodel.price.status import PriceStatus, reason
from commodel.report.sections import crowding
from commodel.report.values import finite
from commodel.report.words import count

NEEDED = ["point", "platform", "operation", "batch", "measured", "measured_low", "measured_high", "predicted"]
KERNELS = ("summa", "wave2d")
WORTH_TELLING = 1.1  # times as long as the price
DOUBTFUL = 0.1  # of the prices of the family that predicts best: fewer are not worth a word
LOOK = "; a slow node or levels without a name may do that: `probes: [auto, nodepairs]`, then `commodel network`"
NETWORK = (PriceStatus.CROWDED, PriceStatus.UNPLACED, PriceStatus.NOT_PROBED)
BUSY = 0.25  # of the processors, by others before a batch began


def odd(comparison: pd.DataFrame, provenance: Mapping[str, Mapping], paired: Collection[str] = ()) -> list[str]:
    """All that the first screen calls odd about how points were measured. `paired`: platforms of which pairs of nodes
    were timed."""
    of_machines = crowding.sentences(comparison, provenance), sentences(comparison, provenance)
    return [*_unnamed(comparison), *of_machines[0], *of_machines[1], *_doubted(comparison, paired)]


def _unnamed(comparison: pd.DataFrame) -> list[str]:
    """Platforms whose nodes are near and far, which their files do not say."""
    unnamed = comparison["status"].map(PriceStatus.UNNAMED.of).astype(bool)
    doubted = comparison[unnamed].drop_duplicates("platform")
    help = "`commodel network EXPERIMENT --levels` tells them, after `probes: [auto, nodepairs]`"
    return [
        f"{platform}: {reason(status)}: {help}; then only what is new is measured."
        for platform, status in zip(doubted["platform"], doubted["status"], strict=True)
    ]


def _doubted(comparison: pd.DataFrame, paired: Collection[str]) -> list[str]:
    """Platforms whose network does what no family here knows, as far as the one that predicts best says so."""
    lines = []
    for platform, part in comparison.groupby("platform", sort=False):
        families = ranked(part)["family"]
        rows = part[part["held_out"] & part["mu"].notna() & part["family"].isin(families[:1])]
        named = rows.loc[~rows["status"].map(PriceStatus.UNNAMED.of).astype(bool), "status"]
        doubts = named[[any(status.of(text) for status in NETWORK) for text in named]]
        if len(doubts) <= DOUBTFUL * len(rows):
            continue
        why = doubts.mode().iloc[0]
        line = f"{platform}: the best family, {families.iloc[0]}, doubts {len(doubts)} of {count(len(rows), 'price')}"
        unseen = platform not in paired and PriceStatus.CROWDED.of(why) and _flat(rows)
        lines.append(f"{line}: {why}{LOOK if unseen else ''}.")
    return lines


def _flat(rows: pd.DataFrame) -> bool:
    """Whether nobody named levels."""
    return "reach" not in rows or bool(rows["reach"].fillna("").eq("").all())


def sentences(comparison: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """Of measured points; simulated machines have neither caches nor others on them."""
    real = comparison.loc[comparison["measured"].notna() & ~comparison["simulated"].astype(bool), NEEDED]
    real = real.assign(spread=spreads(real))
    steady = real[real["spread"] <= UNSTEADY]
    return [*_unsteady(real), *_cold(steady), *_busy(real, provenance)]


def _unsteady(real: pd.DataFrame) -> list[str]:
    lines = []
    for platform, points in real.drop_duplicates("point").groupby("platform"):
        if wild := int((points["spread"] > UNSTEADY).sum()):
            known = f"{wild} of {count(len(points), 'measured median')} {'is' if wild == 1 else 'are'} known"
            factors = f"to a factor of {UNSTEADY:g} at best, of {two_digits(points['spread'].max())} at worst"
            why = "samples scatter or passes differ, as where others use the machine; measure again when it is idle"
            lines.append(f"{platform}: {known} {factors}: {why}.")
    return lines


def _cold(real: pd.DataFrame) -> list[str]:
    lines = []
    kernels = real["operation"].str.split(":").str[0].isin(KERNELS)
    for platform, rows in real[kernels].groupby("platform"):
        ratio = (rows["measured"] / rows["predicted"]).median()
        if ratio > WORTH_TELLING:
            points = count(rows["point"].nunique(), "point")
            lines.append(
                f"{platform}: kernels took {ratio:.2g} times their prices ({points}, median of all families). They "
                "compute between their messages, which may then leave memory that is no longer in the caches; no probe "
                "does that."
            )
    return lines


def _busy(real: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """Where the driver runs on the machine that is measured."""
    lines = []
    for platform, rows in real.groupby("platform"):
        about = [provenance.get(batch, {}) for batch in rows["batch"].unique()]
        recorded = [(entry.get("at_work"), entry.get("cores")) for entry in about]
        known = [(at_work, int(cores)) for at_work, cores in recorded if finite(at_work) and finite(cores)]
        at_work, cores = max(known, default=(0.0, 1))
        if at_work > BUSY * cores:
            lines.append(
                f"{platform}: the machine was busy before measuring began: others kept {at_work:.1f} of its "
                f"{count(cores, 'processor')} at work."
            )
    return lines
