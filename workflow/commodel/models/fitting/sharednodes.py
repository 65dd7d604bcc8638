"""Whether ranks of a probe shared nodes: then some of its messages never saw the network, and its values mix two."""

from commodel.models.fitting.observed import Cases


def sharing(cases: Cases) -> str:
    """In words for a note; empty where every rank had a node of its own."""
    shared = set()
    for layout, ranks in zip(cases["layout"], cases["ranks"], strict=True):
        _, _, per_node = str(layout).partition(":")
        if per_node.isdigit() and int(per_node) > 1:
            shared.add((min(int(per_node), int(ranks)), int(ranks)))
    if not shared:
        return ""
    most, ranks = max(shared)
    if most >= ranks:
        return f"all {ranks} ranks on one node: of messages within it"
    return f"up to {most} ranks on a node: of messages between nodes and within them"
