"""What carries messages on a platform, MPI or an overlay network, and which points are known to which of them."""

from collections.abc import Mapping

from commodel.errors import UserError
from commodel.patterns.operations import FEWEST_RANKS, MPI, OVERLAY, given_of, operation, operations, parameters
from commodel.patterns.written import is_written

WAVES = {"overlay-reduce": 1, "overlay-broadcast": 1, "overlay-throughput": 50}  # of an overlay's own spellings


def on_substrate(substrate: str, combination: Mapping[str, object]) -> Mapping[str, object]:
    """A combination as this substrate has it: what it does not know is refused; `overlay-throughput` has waves. With
    no substrate, as where patterns are priced without a platform, all is known."""
    name = combination["operation"]
    spelling = name.partition(":")[0].strip()
    if substrate == MPI and spelling in WAVES:
        raise UserError(f"found '{spelling}', which only a platform with substrate: overlay has", key="operation")
    if is_written(name):
        if substrate == OVERLAY:
            raise UserError(f"found '{name}', but an overlay network runs {_of_overlay()}", key="operation")
        return combination
    _refuse_unknown(substrate, name)
    if substrate == OVERLAY:
        if combination.get("algorithm"):
            message = f"found '{combination['algorithm']}', but an overlay network has no algorithms; give a topology"
            raise UserError(message, key="algorithm")
        if not combination.get("topology"):
            raise UserError(f"on an overlay network {name} needs a topology", key="operation")
    waves = combination.get("waves", WAVES.get(spelling, 1))
    if waves != 1 and (program := operation(name).program):
        raise UserError(f"found {waves}, wanted 1: the kernel {program} takes its iterations one by one", key="waves")
    if substrate == OVERLAY:
        _refuse_mode(name, waves)
    return {**combination, "waves": waves}


def _of_overlay() -> str:
    return ", ".join(name for name, entry in operations().items() if OVERLAY in entry.substrates)


def _refuse_unknown(substrate: str, name: str) -> None:
    try:
        entry, given = operation(name), given_of(name)
    except UserError as error:
        raise UserError(error.message, key="operation") from None
    if substrate == OVERLAY and OVERLAY not in entry.substrates:
        raise UserError(f"found '{entry.name}', but an overlay network runs {_of_overlay()}", key="operation")
    if substrate != OVERLAY and MPI not in entry.substrates:
        raise UserError(f"found '{entry.name}', which only a platform with substrate: overlay has", key="operation")
    overlay_only = [known.name for known in entry.parameters if known.overlay and known.name in given]
    if substrate != OVERLAY and overlay_only:
        raise UserError(f"found {overlay_only[0]}, which only a platform with substrate: overlay has", key="operation")
    if "compute" in given and "filter" in given:
        raise UserError("found compute beside filter, wanted one of them", key="operation")
    if "period" in given and given.get("mode") != "timed":
        raise UserError("found period, which only mode=timed has", key="operation")


def _refuse_mode(name: str, waves: int) -> None:
    named = parameters(name, FEWEST_RANKS, overlay=True)
    mode = named.get("mode", "waves")
    if waves > 1 and not (operation(name).bytes and mode == "waves"):
        what = f"mode={mode}" if operation(name).bytes else operation(name).name
        raise UserError(f"found several waves, which {what} does not have", key="waves")
    if waves == 1 and mode == "waves" and named.get("compute"):
        message = "found compute, of which half a round trip would be half; wanted mode=synchronous or timed, or waves"
        raise UserError(message, key="operation")


def unsaid(name: str) -> bool:
    """Whether no schedule says what an operation with these parameters does: it is measured only."""
    return operation(name).unsaid(parameters(name, FEWEST_RANKS, overlay=True))
