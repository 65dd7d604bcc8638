"""The fastest trees, drawn with the critical path of their predicted time."""

from collections.abc import Sequence

from commodel.compare.alternatives import PredictedTree
from commodel.reports.shape import (
    Answer,
    Axis,
    Chart,
    Section,
    Series,
    Table,
    columns_of,
    count,
    origin,
    percent,
    plain,
    size,
)
from commodel.units import format_seconds

SHEET = "Trees"
NOTE = (
    "The fastest trees of the largest workloads, at the smallest and the largest message. If a message of the critical "
    "path is 1 % slower, the predicted time rises by 1 % of the time that the message has on the path."
)
GREY, STANDS_OUT, NODE = -1, 1, 0  # colours
MARGIN = 1.0  # around the tree


def sections(trees: Sequence[PredictedTree], simulated: set[str]) -> list[Section]:
    if not trees:
        return []
    lines = tuple(sentence(predicted, simulated) for predicted in trees)
    pictures = (picture(number, predicted, simulated) for number, predicted in enumerate(trees, 1))
    return [Section(SHEET, NOTE, (Answer("Critical paths of the fastest trees", lines), *pictures, messages(trees)))]


def tree_name(predicted: PredictedTree) -> str:
    point = predicted.waits.point
    return f"{plain(point.operation)} over {plain(point.topology)}, {size(point.bytes)}"


def sentence(predicted: PredictedTree, simulated: set[str]) -> str:
    waits = predicted.waits
    work = f", {percent(waits.work / waits.prediction)} of it for local work" if waits.work else ""
    where = origin(plain(waits.point.platform), simulated)
    text = (
        f"{where}, {tree_name(predicted)}: {waits.family} predicts {format_seconds(waits.prediction)}{work}; measured "
    )
    path = f"{len(waits.messages)} of {count(len(waits.src), 'message')}"
    return f"{text}{format_seconds(predicted.measured)}. The critical path has {path}."


def picture(number: int, predicted: PredictedTree, simulated: set[str]) -> Chart:
    """Draw a tree with its root on top; a line goes down to each node and back."""
    waits, across, level = predicted.waits, predicted.across.tolist(), predicted.level.tolist()
    walks = [(walk, "messages", GREY) for walk in predicted.walks()]
    walks += [(walk, f"critical path ({waits.family})", STANDS_OUT) for walk in predicted.walks(waits.messages)]
    lines = [
        Series(name, tuple(across[node] for node in walk), tuple(level[node] for node in walk), "walk", colour)
        for walk, name, colour in walks
    ]
    labels = tuple(f"node {plain(name)}" for name in predicted.names)
    nodes = Series("nodes", tuple(across), tuple(level), "dots", NODE, labels)
    ends = -MARGIN, max(across) + MARGIN
    axes = (
        Axis("leaves, from the left", log=False, low=ends[0], high=ends[1], whole=True),
        Axis("level", log=False, low=-MARGIN, high=max(level) + MARGIN, whole=True),
    )
    title = f"{origin(plain(waits.point.platform), simulated)}, {tree_name(predicted)}"
    return Chart(f"Tree {number}", title, *axes, (*lines, nodes))


def messages(trees: Sequence[PredictedTree]) -> Table:
    rows = []
    for number, predicted in enumerate(trees, 1):
        waits, point = predicted.waits, predicted.waits.point
        about = number, plain(point.platform), plain(point.operation), plain(point.topology), point.bytes, waits.family
        rows += [(*about, src, dst, 1e6 * own, 100 * own / waits.prediction) for src, dst, own in waits.messages]
    columns = columns_of("Waits")
    return Table("Waits", "Messages on the critical path", columns, tuple(rows), fixed=1)
