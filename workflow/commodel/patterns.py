"""From a point's names to its Schedule, placed on its nodes."""

from commodel.algorithms import algorithm, over_tree
from commodel.layouts import place
from commodel.records import Point
from commodel.schedule import Schedule
from commodel.topologies import tree


def schedule(point: Point) -> Schedule:
    if point.topology:
        pattern = over_tree(point.operation).build(tree(point.topology), point.bytes)
    else:
        entry, argument = algorithm(point.operation, point.algorithm)
        pattern = entry.build(point.ranks, point.bytes, argument)
    return pattern.placed(place(point.layout, point.ranks)) if point.layout else pattern
