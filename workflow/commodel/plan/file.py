"""A plan as a file has it, which anybody may have written: every field is of the type and form that stages take for
granted, and what is not has its key in the message."""

from collections.abc import Iterator

from pydantic import TypeAdapter

from commodel.errors import UserError, one_line
from commodel.files.paths import AnyPath
from commodel.files.project import check_inside
from commodel.files.typed import read_json_record
from commodel.records import Plan

FORM = TypeAdapter(Plan)
CONTAINER = {"image", "digest", "model", "native"}


def load_plan(path: AnyPath) -> Plan:
    if not path.exists():
        raise UserError("no plan here: nothing has been run yet", file=path.parent)
    plan = read_json_record(FORM, path)
    for key, complaint in _contradictions(plan):
        raise UserError(complaint, file=path, key=key)
    if plan.paper:
        from commodel.price.papers import paper  # families take longer to load than most verbs to run

        try:
            paper(plan.paper)
        except UserError as error:
            raise UserError(error.message, file=path, key="paper") from None
    try:
        for spec in {name for point in plan.points for name in (point.operation, point.topology, point.layout)}:
            check_inside(spec)
    except UserError as error:
        raise UserError(error.message, file=path) from None
    return plan


def _contradictions(plan: Plan) -> Iterator[tuple[str, str]]:
    """What is wrong between the fields of a plan, each of which is right: its key and a message."""
    if plan.measure.min_samples > plan.measure.max_samples:
        yield "measure.min_samples", f"found {plan.measure.min_samples}, wanted at most max_samples"
    for name, platform in plan.platforms.items():
        if platform.container and platform.container.keys() != CONTAINER:
            yield f"platforms.{name}.container", f"wanted the keys {', '.join(sorted(CONTAINER))}"
    for batch in plan.batches:
        key, members = f"batches.{batch.name}", (*batch.cases, *batch.points)
        if batch.platform not in plan.platforms:
            yield key, f"found no platform '{batch.platform}'"
        if not members:
            yield key, "found no cases in it"
        if strays := [member.platform for member in members if member.platform != batch.platform]:
            yield key, f"found a case of platform '{one_line(strays[0], 60)}', wanted '{batch.platform}' only"
