"""The first screen of each platform.

The two maps of the first screen: what to use (operation, ranks × bytes), and whom to trust (family × operation).

What the network is in one figure, for the first screen: a latency and a bandwidth, measured where they were.

The first screen of each platform: who predicts well, what to use, what that gains, what the network is, what is odd.
Each answer is one number and one sentence, which does not name the platform.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import pandas as pd

from commodel.compare.alternatives import find_fastest
from commodel.compare.comparison import summarize, summarize_choices
from commodel.compare.model_ranking import (
    FAIR,
    by_operation,
    drop_equal_models,
    find_best_model,
    find_tied_models,
    operations,
    rank_models,
    sort_by_error,
)
from commodel.compare.network import Network, classes
from commodel.models.keys import Pair
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.prediction_intervals import COVERAGE
from commodel.predictions.validity import Validity, ValidityKind
from commodel.reports.charts import PALE, stem
from commodel.reports.frames import select_salient
from commodel.reports.sections import conditions, standings
from commodel.reports.sections.network import rate_unit
from commodel.reports.shape import (
    ALL,
    CLOSE,
    MICRO,
    MU,
    Behind,
    Cell,
    Chart,
    Front,
    Grid,
    Table,
    Tile,
    by_frequency,
    comma,
    count,
    digits,
    finite,
    percent,
    plain,
    ratio,
    shade,
    shortened,
    size,
)
from commodel.units import format_seconds

LIBRARY, BLANK, OUT = "#FEFEFE", "#F1F3F4", "#E4E7EA"
USE = "Colour: algorithm. ≈: others are as fast. Outlined: the MPI library's own choice is the fastest."
TRUST = "μ: by what factor prices are off, at points that no fit has seen; 1 is exact. Grey: most are doubted."


def use_grid(part: pd.DataFrame) -> Grid:
    """Neighbouring rows that say the same are one."""
    rows = find_fastest(part).sort_values(["operation", "place", "size", "count", "bytes"], kind="stable")
    sizes = sorted(rows["bytes"].unique())
    colours = colouring(rows.loc[~rows["own"], "use"])
    lines = []  # (operation, labels, cells)
    for (operation, place), jobs in rows.groupby(["operation", "place"], sort=True):
        differ = rows.loc[rows["operation"] == operation, "place"].nunique() > 1
        described = []
        for (_, label), some_rows in jobs.groupby(["count", "size"], sort=True):
            described.append((label, {row.bytes: row for row in some_rows.itertuples()}))
        for _, alike in groupby(described, key=lambda entry: {length: winner(row) for length, row in entry[1].items()}):
            same = list(alike)
            lines.append((operation, span([label for label, _ in same]) + (f", {place}" if differ else ""), same))
    cells = []
    for at, (operation, _, same) in enumerate(lines):
        label, last = same[-1]
        for length, row in last.items():
            picks = (("operation", operation), *((("size", label),) if len(same) == 1 else ()), ("bytes", str(length)))
            fill = LIBRARY if row.own else colours[stem(row.use)]
            place, behind = (at, sizes.index(length)), Behind("Comparison", (("point", row.point),))
            cells.append(Cell(*place, winner(row), fill, hint(operation, label, row), row.own, picks, behind))
    columns = tuple(size(length) for length in sizes)
    heads = tuple((operation, label) for operation, label, _ in lines)
    return Grid("use", "What to use", USE, heads, columns, tuple(cells), "message size", "ranks or leaves")


def winner(row) -> str:
    return (CLOSE if row.ties else "") + ("library" if row.own else row.use)


def hint(operation: str, label: str, row) -> str:
    line = f"{operation}, {label}, {size(row.bytes)}: {winner(row).removeprefix(CLOSE)}, {format_seconds(row.measured)}"
    line += f"; as fast: {shortened(list(row.ties), 4)}" if row.ties else f"; {row.gain:.2f}× faster than {row.next}"
    no_library = row.own or not math.isfinite(row.over)
    return line if no_library else f"{line}; library / this: {row.over:.2f}"


def span(labels: list[str]) -> str:
    """`8`, `8–32`: ranks, or with their noun where that is another."""
    texts = [label.removesuffix(" ranks") for label in labels]
    if len(texts) == 1:
        return texts[0]
    first, last = texts[0].partition(" "), texts[-1].partition(" ")
    return f"{first[0]}–{last[0]}{last[1]}{last[2]}"


def colouring(choices: pd.Series) -> dict[str, str]:
    """A colour for each algorithm or kind of tree, the most frequent first; beyond ten they come again."""
    names = [name for name, _ in by_frequency(map(stem, choices))]
    return {name: PALE[place % len(PALE)] for place, name in enumerate(names)}


def trust_grid(judged: pd.DataFrame) -> Grid:
    """The best family first; those that price a few points only come last."""
    named = judged[["family", "validity", "held_out", "mu", "relative_error", "inside"]]
    named = named.assign(operation=operations(judged)).sort_values("operation", kind="stable")
    names = named["operation"].unique().tolist()
    whole = summarize(named.assign(operation=ALL), ["operation", "family"])
    rows = pd.concat([whole, summarize(named, ["operation", "family"])])
    families, platform = sort_by_error(whole)["family"].tolist(), next(iter(judged["platform"]), "")
    if (best := find_best_model(judged)) is not None:
        families.sort(key=lambda family: family != best["family"])
    columns = [ALL, *names] if len(names) > 1 else names
    requested = named.groupby(["operation", "family"])["validity"].agg(list).to_dict()
    cells = []
    for row in rows.itertuples():
        if row.operation not in columns:
            continue
        beyond = row.points_valid < 0.5 * row.points
        words = f"{row.family}, {row.operation}: mean μ {ratio(row.mu_mean)} over {int(row.points)} points"
        if beyond:
            kinds = Counter(Validity.parse(text).label for text in requested.get((row.operation, row.family), ()))
            kinds.pop(ValidityKind.VALID.value, None)
            words += f"; {comma([name for name, _ in kinds.most_common(2)])}" if kinds else ""
        picks = (("family", row.family), *((("operation", row.operation),) if row.operation != ALL else ()))
        place = (families.index(row.family), columns.index(row.operation))
        fill, behind = (
            OUT if beyond else colour_error(row.mu_mean),
            link_mean_error(platform, row.operation, row.family),
        )
        cells.append(Cell(*place, figures(row.mu_mean), fill, words, picks=picks, behind=behind))
    heads = tuple(("", family) for family in families)
    return Grid("trust", "Whom to trust", TRUST, heads, tuple(columns), tuple(cells), "operation", "family")


def link_mean_error(platform: str, operation: str, family: str) -> Behind:
    """The table that says the mean μ of a family's prices."""
    if operation == ALL:
        return Behind("Families", (("platform", platform), ("family", family)), "mu_mean")
    return Behind("Mean μ by operation", (("platform", platform), ("operation", operation)), f"= {family}")


def figures(mu: float) -> str:
    return "∞" if mu == math.inf else f"{mu:.2f}" if mu < 10 else f"{mu:,.0f}"


def colour_error(mu: float) -> str:
    """Good is green, bad is orange: the scale of the tables."""
    if mu <= MU.middle:
        return shade(0.5 * (mu - MU.good) / (MU.middle - MU.good))
    return shade(0.5 + 0.5 * (mu - MU.middle) / (MU.bad - MU.middle))


HALF, ALONE = "Half a round trip of an empty message", "L, without the overheads of the two ends,"
PAIRS = (("alpha", "beta", HALF), ("alpha.a", "beta.a", HALF), ("L", "G", ALONE))  # a latency and a time a byte


def summarize_network(
    sets: Sequence[ParameterSet], networks: Sequence[Network], trips: Sequence[Mapping]
) -> tuple[Tile, Behind | None]:
    """What was measured between the nearest nodes, else between two ranks, else what was fitted."""
    for network in networks:
        rows = classes(network)
        near, far = rows.iloc[0], rows.iloc[-1]
        figure = f"{format_seconds(near['latency'])}, {rate(near['bandwidth'])}"
        ends = [format_seconds(near[end]) for end in ("latency_low", "latency_high")]
        line = "Half a round trip and bandwidth between two nodes"
        line += f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else ""
        if len(rows) > 1:
            farthest = f"{format_seconds(far['latency'])}, {rate(far['bandwidth'])}"
            line += f"; {len(rows)} classes of distance, the farthest {farthest}"
        where = (("platform", plain(network.platform)), ("class", near["class"]))
        return Tile("Network", figure, f"{line}."), Behind("Classes", where)
    if trips := [trip for trip in trips if trip["median"] > 0]:
        pair = min((trip["pair"] for trip in trips), key=lambda pair: Pair.parse(pair).within)
        trips = sorted((trip for trip in trips if trip["pair"] == pair), key=itemgetter("bytes"))
        short, long = trips[0], trips[-1]
        median, low, high = (short[key] / MICRO for key in ("median", "low", "high"))
        figure = f"{format_seconds(median)}, {rate(long['bytes'] / (long['median'] / MICRO))}"
        spread = interval(low, high) or " (the same in every sample)"
        line = f"Half a round trip of {short['label']}{spread} and bandwidth at {long['label']}"
        line += ", between two ranks of one node" if Pair.parse(pair).within else ""
        where = (("platform", short["platform"]), ("pair", pair), ("bytes", short["bytes"]))
        return Tile("Network", figure, f"{line}."), Behind("Latency", where, "median")
    for latency, byte, what in PAIRS:
        for fitted in sets:
            constant, per_byte = fitted.values.get(latency), find_longest_value(fitted, byte)
            if (
                constant is not None
                and per_byte is not None
                and constant.known
                and constant.value > 0
                and per_byte.value > 0
            ):
                figure = f"{format_seconds(constant.value)}, {rate(1 / per_byte.value)}"
                line = f"{what}{interval(constant.low, constant.high)} and bandwidth of long messages"
                line += f", as {fitted.family} fits them"
                named = (("platform", plain(fitted.platform)), ("family", fitted.family), ("name", latency))
                return Tile("Network", plain(figure), plain(f"{line}.")), Behind("Parameters", named, "value")
    return Tile("Network", "not fitted", "No family that was fitted tells a latency and a bandwidth apart."), None


def find_longest_value(fitted: ParameterSet, name: str) -> Estimate | None:
    """A value that may be other where messages are longer: the last one."""
    pieces = [key for key in fitted.values if re.fullmatch(rf"{re.escape(name)}\d*", key)]
    return fitted.values[max(pieces, key=lambda key: (len(key), key))] if pieces else None


def interval(low: float, high: float) -> str:
    return f" [{format_seconds(low)}, {format_seconds(high)}]" if low < high else ""


def rate(bandwidth: float) -> str:
    unit, scale = rate_unit(bandwidth)
    return f"{digits(bandwidth / scale)} {unit}"


MOST_ODD = 3  # sentences
TOLD = 2  # of them, of those that the machine's conditions give


def make_fronts(
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
    frame = select_salient(frame)
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
    best = find_best_model(judged) if judged["mu"].notna().any() else None
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
                (
                    summarize_trust(judged, best),
                    link_mean_error(platform, ALL, best["family"]) if best is not None else None,
                ),
                (summarize_library(part, bool(choices.cells)), Behind("Selection", where)),
                (
                    summarize_gain(part, best),
                    Behind("Choosing", (*where, ("family", best["family"]))) if best is not None else None,
                ),
                summarize_network(sets, networks, trips),
            )
        ),
        choices,
        trust_grid(judged),
        list_anomalies(part, judged, best, odd),
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
    words += (
        [shortened(sorted({describe_container(about.get("container")) for about in batches}), 2)] if batches else []
    )
    words += [f"commit {shortened([commit[:7] for commit in commits], 2)}"] if commits else []
    return plain(" · ".join(words))


def version(text: str) -> str:
    """`MPICH 5.0.2` of whatever else the library says of itself."""
    match = re.match(r"(\S+(?: MPI)?)\D*?(\d+(?:\.\d+)*)", text)
    return f"{match[1]} {match[2]}" if match else text


def describe_container(about: object) -> str:
    """In which container programs ran, by the file of its image."""
    image = about.get("image") if isinstance(about, Mapping) else None
    return f"container {str(image).rpartition('/')[2]}" if image else "no container"


def format_error(mu: float) -> str:
    """How far off, from a mean μ: by a share while that is small, else by a factor."""
    return f"±{float(f'{100 * (mu - 1):.2g}'):g} %" if mu < 2 else f"{digits(mu)}× off"


def summarize_trust(judged: pd.DataFrame, best: pd.Series | None) -> Tile:
    if best is None:
        return Tile("Trust", "no family", "No family has a price above 0 for anything that was measured.")
    rows, tied = rank_models(judged), find_tied_models(judged, best)
    mu = dict(zip(rows["family"], rows["mu_mean"], strict=True))
    after = [
        f"{name} ({format_error(mu[name])}{', statistically tied' if name in tied else ''})"
        for name in drop_equal_models(judged, rows, 3)[1:]
    ]
    poor = [
        name
        for name, part in by_operation(judged)
        if (own := part.loc[(part["family"] == best["family"]) & part["mu"].notna(), "mu"]).size and own.mean() > FAIR
    ]
    line = f"Mean error over {count(best['points'], 'point')} that its fit has not seen"
    line += f"; next {comma(after)}" if after else ""
    line += f"; poor for {shortened(poor, 3)}" if poor else ""
    return Tile("Trust", f"{best['family']} {format_error(best['mu_mean'])}", f"{line}.")


def summarize_library(part: pd.DataFrame, chosen_from: bool) -> Tile:
    if not chosen_from:
        return Tile("Use", "nothing to choose", "No job was measured in two ways or more.")
    rows = standings.compare_with_library(part)
    if rows.empty:
        return Tile(
            "Use", "see below", "The library's own choice was not measured, so that only schedules are compared."
        )
    number = {name: int((rows["outcome"] == name).sum()) for name in standings.OUTCOMES}
    shares = (("a schedule", number["faster"]), ("tied", number["tied"]), ("the library", number["slower"]))
    line = "Jobs that a schedule of yours, or the library's own choice, does clearly faster"
    won = max(("yours:", number["faster"]), ("library:", number["slower"]), key=lambda entry: entry[1])
    return Tile("Use", f"{won[0]} {won[1]} of {len(rows)}", f"{line}.", shares)


def summarize_gain(part: pd.DataFrame, best: pd.Series | None) -> Tile:
    chosen = part[part["chosen"] & (part["family"] == best["family"])] if best is not None else part.iloc[:0]
    if chosen.empty:
        return Tile("Gain", "nothing to choose", "No job has two measured schedules that the best family prices.")
    pick = summarize_choices(part[part["family"] == best["family"]], ["family"]).iloc[0]
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


def list_anomalies(
    part: pd.DataFrame, judged: pd.DataFrame, best: pd.Series | None, odd: Sequence[str]
) -> tuple[str, ...]:
    once = part.drop_duplicates("point")
    lines = conditions.describe_unmeasured_points(once)[:1]
    lines += list(odd)[:TOLD]
    lines += (
        [f"{line}." for line in conditions.describe_missing_intervals(judged, best["family"])]
        if best is not None
        else []
    )
    if best is not None and finite(inside := best["inside_share"]):
        line = f"Intervals of {best['family']} hold {percent(inside)} of {best['points']:,} medians"
        chance = 2 * math.sqrt(COVERAGE * (1 - COVERAGE) / best["points"])  # how far off such a share is by chance
        lines += [f"{line}; 95 % would be right."] if abs(inside - COVERAGE) > chance else []
    discarded, kept = int(once["invalid"].sum()), int(once["samples"].sum())
    if discarded > 0.1 * (discarded + kept):
        lines.append(f"{discarded:,} of {discarded + kept:,} samples were discarded because a rank started late.")
    return tuple(plain(line[0].upper() + line[1:]) for line in lines[:MOST_ODD])
