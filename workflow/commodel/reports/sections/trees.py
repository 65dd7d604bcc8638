"""The fastest trees, drawn with the critical path of their predicted time."""

from collections.abc import Sequence

from commodel.compare.alternatives import PredictedTree
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
    Axis,
    Chart,
    Section,
    Series,
    Table,
    format_count,
    format_percent,
    format_size,
    label_platform,
    make_table,
    to_plain_value,
)
from commodel.units import format_seconds

NOTE = (
    "The fastest trees of the largest workloads, at the smallest and the largest message. If a message of the critical "
    "path is 1 % slower, the predicted time rises by 1 % of the time that the message has on the path."
)
OTHER_MESSAGES_COLOUR = -1
CRITICAL_PATH_COLOUR = 1
NODE_COLOUR = 0  # colours
AXIS_MARGIN = 1.0  # leaves or levels between the tree and the ends of an axis


def make_sections(trees: Sequence[PredictedTree], simulated: set[str]) -> list[Section]:
    if not trees:
        return []
    lines = tuple(describe_critical_path(predicted, simulated) for predicted in trees)
    pictures = (
        draw_tree(number, predicted, simulated) for number, predicted in enumerate(trees, 1)
    )
    answer = AnsweredQuestion("Critical paths of the fastest trees", lines)
    return [Section("Trees", NOTE, (answer, *pictures, tabulate_messages(trees)))]


def make_tree_name(predicted: PredictedTree) -> str:
    point = predicted.attribution.point
    return (
        f"{to_plain_value(point.operation)} over {to_plain_value(point.topology)}, "
        f"{format_size(point.bytes)}"
    )


def describe_critical_path(predicted: PredictedTree, simulated: set[str]) -> str:
    attribution = predicted.attribution
    work = (
        f", {format_percent(attribution.work / attribution.prediction)} of it for local work"
        if attribution.work
        else ""
    )
    where = label_platform(to_plain_value(attribution.point.platform), simulated)
    text = f"{where}, {make_tree_name(predicted)}: {attribution.model} predicts "
    text += f"{format_seconds(attribution.prediction)}{work}"
    path = f"{len(attribution.messages)} of {format_count(len(attribution.src), 'message')}"
    return f"{text}; measured {format_seconds(predicted.measured)}. The critical path has {path}."


def draw_tree(number: int, predicted: PredictedTree, simulated: set[str]) -> Chart:
    """Draw a tree with its root on top; a line goes down to each node and back."""
    attribution = predicted.attribution
    x = predicted.x.tolist()
    y = predicted.y.tolist()
    walks = [(walk, "messages", OTHER_MESSAGES_COLOUR) for walk in predicted.walks()]
    walks += [
        (walk, f"critical path ({attribution.model})", CRITICAL_PATH_COLOUR)
        for walk in predicted.walks(attribution.messages)
    ]
    lines = []
    for walk, name, colour in walks:
        x_of_walk = tuple(x[node] for node in walk)
        y_of_walk = tuple(y[node] for node in walk)
        lines.append(Series(name, x_of_walk, y_of_walk, "walk", colour))
    labels = tuple(f"node {to_plain_value(name)}" for name in predicted.names)
    nodes = Series("nodes", tuple(x), tuple(y), "dots", NODE_COLOUR, labels)
    ends = -AXIS_MARGIN, max(x) + AXIS_MARGIN
    axes = (
        Axis("leaves, from the left", log=False, low=ends[0], high=ends[1], whole_numbers=True),
        Axis("level", log=False, low=-AXIS_MARGIN, high=max(y) + AXIS_MARGIN, whole_numbers=True),
    )
    title = (
        f"{label_platform(to_plain_value(attribution.point.platform), simulated)}, "
        f"{make_tree_name(predicted)}"
    )
    return Chart(f"Tree {number}", title, *axes, (*lines, nodes))


def tabulate_messages(trees: Sequence[PredictedTree]) -> Table:
    rows = []
    for number, predicted in enumerate(trees, 1):
        attribution = predicted.attribution
        point = predicted.attribution.point
        head = (
            number,
            point.platform,
            point.operation,
            point.topology,
            point.bytes,
            attribution.model,
        )
        rows += [
            (*head, src, dst, MICRO * seconds, 100 * seconds / attribution.prediction)
            for src, dst, seconds in attribution.messages
        ]
    return make_table("Critical path", "Messages on the critical path", rows)
