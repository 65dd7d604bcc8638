"""The first screen of each platform: who predicts well, what to use, what that gains, what the network is, what is odd.
Each answer is one number and one sentence, which does not name the platform."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from commodel.compare.choices import selection
from commodel.compare.network import Network
from commodel.compare.ranking import FAIR, best_family, by_operation, distinct, ranked, tied_families
from commodel.parameters import ParameterSet
from commodel.price.bands import SHARE
from commodel.report.frames import salient
from commodel.report.front import Behind, Front, Tile
from commodel.report.matrix import digits
from commodel.report.sections import gaps, library
from commodel.report.sections.grids import ALL, averaged, trust_grid, use_grid
from commodel.report.sections.wire import net
from commodel.report.shape import Chart, Table
from commodel.report.values import finite, plain
from commodel.report.words import comma, count, percent, shortened

MOST_ODD = 3  # sentences
TOLD = 2  # of them, of those that the machine's conditions give


def fronts(
    frame: pd.DataFrame,
    judged: pd.DataFrame,
    scatters: Mapping[str, Chart],
    times: Mapping[str, Sequence[Chart]],
    sets: Sequence[ParameterSet],
    networks: Sequence[Network],
    latencies: Table,
    provenance: Mapping[str, Mapping],
    odd: Sequence[str],
) -> tuple[Front, ...]:
    """What was measured on a machine comes first. `latencies` are half the round trips by message size, `odd` sentences
    that begin with a platform and a colon."""
    keys = [column.key for column in latencies.columns]
    trips = [dict(zip(keys, row, strict=True)) for row in latencies.rows]
    frame = salient(frame)
    order = frame.drop_duplicates("platform").sort_values(["simulated", "platform"], kind="stable")["platform"]
    return tuple(
        front(
            platform,
            frame[frame["platform"] == platform],
            judged[judged["platform"] == platform],
            [parameters for parameters in sets if plain(parameters.platform) == platform],
            [network for network in networks if plain(network.platform) == platform],
            [trip for trip in trips if trip["platform"] == platform],
            [about for about in provenance.values() if plain(about.get("platform")) == platform],
            [line.removeprefix(f"{platform}: ") for line in odd if line.startswith(f"{platform}: ")],
            scatters.get(platform),
            times[platform][0] if platform in times else None,
        )
        for platform in order
    )


def front(platform, part, judged, sets, networks, trips, batches, odd, scatter, times) -> Front:
    best = best_family(judged) if judged["mu"].notna().any() else None
    simulated = bool(part["simulated"].any())
    where = (("platform", platform),)
    choices = use_grid(part)
    return Front(
        platform,
        simulated,
        origin(part, batches, simulated),
        tuple(
            replace(tile, behind=behind)
            for tile, behind in (
                (trust(judged, best), averaged(platform, ALL, best["family"]) if best is not None else None),
                (use(part, bool(choices.cells)), Behind("Selection", where)),
                (
                    gain(part, best),
                    Behind("Choosing", (*where, ("family", best["family"]))) if best is not None else None,
                ),
                net(sets, networks, trips),
            )
        ),
        choices,
        trust_grid(judged),
        oddities(part, judged, best, odd),
        scatter,
        times,
    )


def origin(part: pd.DataFrame, batches: Sequence[Mapping], simulated: bool) -> str:
    """`measured · 2026-11-21 · 32 hosts · MPICH 5.0 · commit ab12`, as far as it is known."""
    days = sorted({str(about["date"])[:10] for about in batches if about.get("date")})
    hosts = {str(host) for about in batches for host in about.get("hosts") or ()}
    libraries = sorted({version(str(about["mpi"])) for about in batches if about.get("mpi")})
    commits = sorted({str(about["commit"]) for about in batches if about.get("commit")})
    words = ["simulated" if simulated else "measured"]
    words += [" to ".join(dict.fromkeys((days[0], days[-1])))] if days else []
    words += [] if simulated or not hosts else [count(len(hosts), "host")]
    words += [f"up to {int(part['ranks'].max())} ranks"] if len(part) else []
    words += [shortened(libraries, 2)] if libraries else []
    words += [shortened(sorted({contained(about.get("container")) for about in batches}), 2)] if batches else []
    words += [f"commit {shortened([commit[:7] for commit in commits], 2)}"] if commits else []
    return plain(" · ".join(words))


def version(text: str) -> str:
    """`MPICH 5.0.2` of whatever else the library says of itself."""
    match = re.match(r"(\S+(?: MPI)?)\D*?(\d+(?:\.\d+)*)", text)
    return f"{match[1]} {match[2]}" if match else text


def contained(about: object) -> str:
    """In which container programs ran, by the file of its image."""
    image = about.get("image") if isinstance(about, Mapping) else None
    return f"container {str(image).rpartition('/')[2]}" if image else "no container"


def off(mu: float) -> str:
    """How far off, from a mean μ: by a share while that is small, else by a factor."""
    return f"±{float(f'{100 * (mu - 1):.2g}'):g} %" if mu < 2 else f"{digits(mu)}× off"


def trust(judged: pd.DataFrame, best: pd.Series | None) -> Tile:
    if best is None:
        return Tile("Trust", "no family", "No family has a price above 0 for anything that was measured.")
    rows, tied = ranked(judged), tied_families(judged, best)
    mu = dict(zip(rows["family"], rows["mu_mean"], strict=True))
    after = [
        f"{name} ({off(mu[name])}{', not told apart' if name in tied else ''})"
        for name in distinct(judged, rows, 3)[1:]
    ]
    poor = [
        name
        for name, part in by_operation(judged)
        if (own := part.loc[(part["family"] == best["family"]) & part["mu"].notna(), "mu"]).size and own.mean() > FAIR
    ]
    line = f"Mean error over {count(best['points'], 'point')} that its fit has not seen"
    line += f"; next {comma(after)}" if after else ""
    line += f"; poor for {shortened(poor, 3)}" if poor else ""
    return Tile("Trust", f"{best['family']} {off(best['mu_mean'])}", f"{line}.")


def use(part: pd.DataFrame, chosen_from: bool) -> Tile:
    if not chosen_from:
        return Tile("Use", "nothing to choose", "No job was measured in two ways or more.")
    rows = library.against(part)
    if rows.empty:
        return Tile(
            "Use", "see below", "The library's own choice was not measured, so that only schedules are compared."
        )
    number = {name: int((rows["outcome"] == name).sum()) for name in library.OUTCOMES}
    shares = (("a schedule", number["faster"]), ("tied", number["tied"]), ("the library", number["slower"]))
    line = "Jobs that a schedule of yours, or the library's own choice, does clearly faster"
    won = max(("yours:", number["faster"]), ("library:", number["slower"]), key=lambda entry: entry[1])
    return Tile("Use", f"{won[0]} {won[1]} of {len(rows)}", f"{line}.", shares)


def gain(part: pd.DataFrame, best: pd.Series | None) -> Tile:
    chosen = part[part["chosen"] & (part["family"] == best["family"])] if best is not None else part.iloc[:0]
    if chosen.empty:
        return Tile("Gain", "nothing to choose", "No job has two measured schedules that the best family prices.")
    pick = selection(part[part["family"] == best["family"]], ["family"]).iloc[0]
    line = f"picks take {percent(pick['regret_mean'])} longer than the fastest schedules on average"
    line += f", {percent(pick['regret_max'])} at worst"
    if not pick["regret_max"] > 0:
        line = "picks are the fastest schedules measured"
    jobs, over = f"{count(pick['groups'], 'job')} of several schedules", pick["over_library"]
    if not over > 0:
        return Tile(
            "Gain", percent(pick["right"]), f"So often what {best['family']} picks in {jobs} is the fastest; {line}."
        )
    if over <= 1:
        return Tile(
            "Gain",
            f"{1 / over:.2f}× faster",
            f"Than the library's choice, by what {best['family']} picks in {jobs}; {line}.",
        )
    text = f"Than the library's choice, by what {best['family']} picks in {jobs}: leave it to the library; {line}."
    return Tile("Gain", f"{over:.2f}× slower", text)


def oddities(part: pd.DataFrame, judged: pd.DataFrame, best: pd.Series | None, odd: Sequence[str]) -> tuple[str, ...]:
    once = part.drop_duplicates("point")
    lines = gaps.points(once)[:1]
    lines += list(odd)[:TOLD]
    lines += [f"{line}." for line in gaps.without_errors(judged, best["family"])] if best is not None else []
    if best is not None and finite(inside := best["inside_share"]):
        line = f"Intervals of {best['family']} hold {percent(inside)} of {best['points']:,} medians"
        chance = 2 * math.sqrt(SHARE * (1 - SHARE) / best["points"])  # how far off such a share is by chance
        lines += [f"{line}; 95 % would be right."] if abs(inside - SHARE) > chance else []
    discarded, kept = int(once["invalid"].sum()), int(once["samples"].sum())
    if discarded > 0.1 * (discarded + kept):
        lines.append(f"{discarded:,} of {discarded + kept:,} samples were discarded because a rank started late.")
    return tuple(plain(line[0].upper() + line[1:]) for line in lines[:MOST_ODD])
