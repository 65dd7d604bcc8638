"""The algorithms that Open MPI's rules may name for a workload (`list_named_algorithms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commodel.advice import Workload
from commodel.advice.alternatives import list_algorithms
from commodel.errors import UserError
from commodel.interchange import rules
from commodel.interchange.rules import Assumptions


def list_named_algorithms(
    workload: Workload, only: Sequence[str], assumptions: Assumptions
) -> list[str]:
    """Return the algorithms, or of these `only` some, that Open MPI's rules may name for a
    workload."""
    if workload.leaves:
        raise UserError("Open MPI's rules are of collectives: give --ranks, not --leaves")
    for spec in only:
        if not rules.can_select(workload.operation, spec):
            raise UserError(f"Open MPI's rules cannot name '{spec}' for {workload.operation}")
        risk = rules.find_risk(workload.operation, spec, assumptions)
        if risk:
            raise UserError(
                f"found --only {spec} for {workload.operation}, which {risk}; {_suggest_option(risk)}"
            )
    specs = only or list_algorithms(workload.operation, workload.ranks, workload.bytes)
    return [spec for spec in specs if rules.can_select(workload.operation, spec, assumptions)]


def leave_out_unsafe(
    workloads: Sequence[Workload],
    choices: Callable[[Workload], Sequence[str]],
    progress: Callable[[str], None],
) -> list[Workload]:
    """Return the workloads for which a rule may name an algorithm, and print which operations are
    left to Open MPI."""
    safe = [workload for workload in workloads if choices(workload)]
    for operation in dict.fromkeys(
        workload.operation for workload in workloads if workload not in safe
    ):
        specs = next(
            list_algorithms(workload.operation, workload.ranks, workload.bytes)
            for workload in workloads
            if workload.operation == operation
        )
        risks = filter(None, (rules.find_risk(operation, spec) for spec in specs))
        risk = next(risks, rules.FAILS_WITH_MIXED_DATATYPES)
        text = f"no algorithm of {operation} is safe in a rule; {_suggest_option(risk)}"
        if not safe:
            raise UserError(text)
        progress(f"left to Open MPI: {text}")
    return safe


def _suggest_option(risk: str) -> str:
    option = "--commutative" if risk == rules.REORDERS_OPERANDS else "--same-types"
    return f"wanted: {option}, if this holds for all programs"
