"""The content of an experiment file (`Experiment`): its platform, probes and models, the precision
of measurements, and its matrix of points.

The planner checks whether an algorithm, a topology, a model or a probe of a given name exists, and
reports it by `Experiment.error`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import Field, PrivateAttr, WrapValidator, model_validator

from commodel import units
from commodel.errors import UserError
from commodel.files import expressions, fields
from commodel.files.fields import (
    NAME,
    PARAMETER,
    RANKS,
    SIZE,
    SPEC,
    TABLE,
    WORD,
    FileMapping,
    convert,
    convert_quantity,
    limit_count,
    make_refusal,
    read_axis,
)
from commodel.files.quantities import MAX_ENTRIES
from commodel.units import show_value


@contextmanager
def locate_errors(part: FileMapping, *path: str | int) -> Iterator[None]:
    """Add file, line and key of the value at `path`, relative to `part`, to a UserError raised in
    the `with` block."""
    try:
        yield
    except UserError as error:
        raise part.error(path, error.message) from None


AXES = (
    "operation",
    "algorithm",
    "topology",
    "layout",
    "ranks",
    "nodes",
    "ranks_per_node",
    "bytes",
    "waves",
)
WAVES = Annotated[int, limit_count(1, units.MAX_WAVES)]
Part = TypeVar("Part", bound=FileMapping)
ABSENT: Any = None  # the value of a field that a combination may lack
if TYPE_CHECKING:
    Names = tuple[NAME, ...] | str  # or the word for all
else:
    Names = tuple[NAME, ...]
# prefix of an axis that is a parameter of the operation, such as parameters.grid
PARAMETER_PREFIX = "parameters."


class Measure(FileMapping):
    sync: Annotated[str, fields.choose_from("barrier", "window")] = Field(
        "window", description="how ranks are synchronised before each sample"
    )
    precision: Annotated[float, convert_quantity(units.parse_fraction, "2%")] = Field(
        0.02,
        description="target half-width of the 95 % interval of the median, relative to the median",
    )
    min_samples: Annotated[int, limit_count(1, 1_000_000)] = Field(
        10, description="minimum number of samples of a point"
    )
    max_samples: Annotated[int, limit_count(1, 1_000_000)] = Field(
        500, description="maximum number of samples of a point"
    )
    seconds: Annotated[float, convert_quantity(units.parse_number_of_seconds, "2 s")] = Field(
        2.0, description="time budget of one point"
    )
    passes: Annotated[int, limit_count(1, 100)] = Field(
        3,
        description="rounds over all cases of a batch; they share the budgets, and their disagreement widens intervals",
    )
    warmup: Annotated[int, limit_count(0, 1_000_000)] = Field(
        2, description="runs before the first sample, which are discarded"
    )
    timeout: Annotated[
        float, convert_quantity(units.parse_seconds, "1 min", unit_optional=False)
    ] = Field(
        60.0,
        description="time beyond its budget after which a point is given up; simulated: 1 to 10 times as much",
    )

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        if self.min_samples > self.max_samples:
            raise make_refusal(
                f"found {self.min_samples}, wanted at most max_samples, {self.max_samples}",
                "min_samples",
            )
        return self


class Batching(FileMapping):
    budget: Annotated[float, convert_quantity(units.parse_seconds, "8 h", unit_optional=False)] = (
        Field(
            8 * 3600.0,
            description="maximum time of one batch, which is one Slurm job; points left then are not measured",
        )
    )
    smaller: fields.FLAG = Field(
        False,
        description="run points of fewer nodes in the largest allocation instead of one of their own",
    )

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        if self.budget < 60:
            raise make_refusal(f"found {self.budget:g} s, wanted at least 1 min", "budget")
        return self


# The values of each axis. Types such as SPEC and RANKS are defined in `files.fields`.
class Axes(FileMapping):
    operation: Annotated[tuple[SPEC, ...], read_axis(SPEC)] = Field(
        (), description="collective operation or kernel, such as bcast"
    )
    algorithm: Annotated[tuple[SPEC, ...], read_axis(SPEC)] = Field(
        (), description="algorithm of the operation; an operation needs this or topology, not both"
    )
    topology: Annotated[tuple[SPEC, ...], read_axis(SPEC)] = Field(
        (), description="tree over which the operation runs, such as kary:2^4 or file:PATH"
    )
    layout: Annotated[tuple[SPEC, ...], read_axis(SPEC)] = Field(
        (), description="placement of ranks on nodes, such as block or cyclic"
    )
    ranks: Annotated[tuple[RANKS, ...], read_axis(RANKS, units.parse_count)] = Field(
        (), description="number of MPI ranks; default: nodes x ranks_per_node"
    )
    nodes: Annotated[tuple[RANKS, ...], read_axis(RANKS, units.parse_count)] = Field(
        (), description="number of nodes for the ranks"
    )
    ranks_per_node: Annotated[tuple[RANKS, ...], read_axis(RANKS, units.parse_count)] = Field(
        (), description="number of MPI ranks of each node"
    )
    bytes: Annotated[tuple[SIZE, ...], read_axis(SIZE, units.parse_bytes)] = Field(
        (), description="message size, such as 4096 or 64KiB"
    )
    waves: Annotated[tuple[WAVES, ...], read_axis(WAVES, units.parse_waves)] = Field(
        (), description="number of repetitions without synchronisation in between"
    )
    parameters: dict[WORD, Annotated[tuple[PARAMETER, ...], read_axis(PARAMETER)]] = Field(
        {}, description="parameters of the operation by name: {grid: [4x2, 8x1]}"
    )


def _keep_order_of_file(value: Any, handler: Callable[[Any], Axes]) -> dict[str, tuple[Any, ...]]:
    """Return the axes that the file has, in its order: the first axis varies slowest. Each
    parameter is an axis."""
    axes = handler(value)
    table: dict[str, tuple[Any, ...]] = {}
    for name in value:
        values = getattr(axes, name)
        is_parameters = name == "parameters"
        table |= (
            {PARAMETER_PREFIX + key: axis for key, axis in values.items()}
            if is_parameters
            else {name: values}
        )
    return table


if TYPE_CHECKING:
    AxisTable = dict[str, tuple[Any, ...]]
else:
    AxisTable = Annotated[Axes, WrapValidator(_keep_order_of_file)]


# One value of each axis.
class Combination(FileMapping):
    operation: SPEC = Field(description="collective operation or kernel, such as bcast")
    algorithm: SPEC = Field(
        "", description="algorithm of the operation; an operation needs this or topology, not both"
    )
    topology: SPEC = Field(
        "", description="tree over which the operation runs, such as kary:2^4 or file:PATH"
    )
    layout: SPEC = Field("", description="placement of ranks on nodes, such as block or cyclic")
    ranks: RANKS = Field(ABSENT, description="number of MPI ranks; default: nodes x ranks_per_node")
    nodes: RANKS = Field(ABSENT, description="number of nodes for the ranks")
    ranks_per_node: RANKS = Field(ABSENT, description="number of MPI ranks of each node")
    bytes: SIZE = Field(ABSENT, description="message size, such as 4096 or 64KiB")
    waves: WAVES = Field(1, description="number of repetitions without synchronisation in between")
    parameters: dict[WORD, PARAMETER] = Field(
        {}, description="parameters of the operation by name: {grid: 4x2}"
    )

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        if self.algorithm and self.topology:
            raise make_refusal("found beside an algorithm, wanted one of the two", "topology")
        return self


def _parse_condition(value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(
            f"found {show_value(value)}, wanted an expression such as \"ranks > 64 and layout == 'cyclic'\""
        )
    return expressions.parse_expression(value, AXES).text


class Exclusion(FileMapping):
    where: Annotated[
        str, convert(_parse_condition, type="string", maxLength=expressions.MAX_LENGTH)
    ] = Field(
        description="expression over the axis names; combinations for which it is true are omitted"
    )


# A part of the matrix: the product of its axes without the excluded combinations, and the included
# ones.
class Block(FileMapping):
    platform: NAME | None = Field(
        None, description="platform of this block, if another than that of the experiment"
    )
    axes: AxisTable = Field(
        default_factory=dict, description="axes with their values; every combination is a point"
    )
    zips: dict[WORD, AxisTable] = Field(
        default_factory=dict,
        description="named groups of axes of equal length whose values are paired",
    )
    exclude: tuple[Exclusion, ...] = Field((), max_length=100, description="combinations to omit")
    include: tuple[Combination, ...] = Field(
        (), max_length=MAX_ENTRIES, description="single combinations to add"
    )
    table: TABLE | None = Field(
        None, description="file .tsv or .csv of the project with further combinations, one a row"
    )
    # The line of each row of the table. The rows are the last entries of `include`.
    _table_lines: tuple[int, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _check_axes(self) -> Self:
        place_of_axis = dict.fromkeys(self.axes, "the axes")
        for zip_name, table in self.zips.items():
            for name in table:
                if name in place_of_axis:
                    raise make_refusal(
                        f"found here and in {place_of_axis[name]}, wanted once",
                        "zips",
                        zip_name,
                        name,
                    )
                place_of_axis[name] = f"the zip '{zip_name}'"
            lengths = {name: len(values) for name, values in table.items()}
            if len(set(lengths.values())) != 1:
                sizes = ", ".join(f"{size} values of {name}" for name, size in lengths.items())
                raise make_refusal(
                    f"found {sizes or 'an empty zip'}, wanted equally many", "zips", zip_name
                )
        if "algorithm" in place_of_axis and "topology" in place_of_axis:
            raise make_refusal("found both algorithm and topology, wanted one of them in a block")
        if place_of_axis and "operation" not in place_of_axis:
            raise make_refusal("found no axis 'operation'")
        if not place_of_axis and not self.include and not self.table:
            raise make_refusal("found an empty block, wanted axes, zips, include or table")
        return self

    def with_rows(self, combinations: Mapping[int, Combination]) -> "Block":
        """Return the block with the rows of its table added to `include`; keys are their lines in
        the file."""
        block = self.model_copy(update={"include": (*self.include, *combinations.values())})
        block._table_lines = tuple(combinations)
        return block

    def error(self, path: tuple[str | int, ...], message: str) -> UserError:
        """Return an error about this block; an error about a row of its table has the file and line
        of the row."""
        first_row = len(self.include) - len(self._table_lines)
        match path:
            case ("include", int(index), *column) if index >= first_row:
                return UserError(
                    message,
                    file=self.table,
                    line=self._table_lines[index - first_row],
                    key=".".join(map(str, column)),
                )
        return super().error(path, message)


def make_default(kind: type[Part]) -> Callable[[], Part]:
    """Return a function that makes a part of an experiment of which the file has no key."""
    return lambda: kind.model_validate({})


class Experiment(FileMapping):
    title: fields.TITLE = Field("", description="one line for the reports")
    platform: NAME = Field(description="name of a file in params/platforms, without .yaml")
    models: Annotated[Names, fields.read_names("all")] = Field(
        "all", description="models to fit and compare"
    )
    probes: Annotated[Names, fields.read_names("auto")] = Field(
        "auto",
        description="micro-benchmarks; auto, also in a list: those of the models and those that check networks",
    )
    seed: Annotated[int, limit_count(0, 2**63 - 1)] = Field(
        1, description="seed of every shuffle and every bootstrap"
    )
    measure: Measure = Field(
        default_factory=make_default(Measure), description="how precisely to measure"
    )
    batch: Batching = Field(
        default_factory=make_default(Batching), description="how points are grouped into batches"
    )
    probe_bytes: Annotated[tuple[SIZE, ...], read_axis(SIZE, units.parse_bytes, auto="auto")] = (
        Field(
            (),
            max_length=1000,
            description="message sizes of the probes; auto: from 1 B to the longest message, 64 KiB to 16 MiB",
        )
    )
    library: fields.FLAG = Field(True, description="also measure the MPI default of every workload")
    survey: fields.FLAG = Field(
        True,
        description="time pairs of nodes first and learn the levels of networks whose file names none",
    )
    paper: NAME | None = Field(
        None, description="paper whose figures and tables the report rebuilds"
    )
    speeds: tuple[SPEC, ...] = Field(
        (),
        max_length=100,
        description="files of speeds from commodel measure speeds, which the report shows",
    )
    matrix: tuple[Block, ...] = Field(
        (), max_length=1000, description="what to measure and predict"
    )

    def block_platform(self, block: Block) -> str:
        return block.platform or self.platform

    @property
    def has_automatic_probes(self) -> bool:
        """Whether the program chooses probes, possibly beside those that the experiment names."""
        return self.probes == "auto" or "auto" in self.probes

    @property
    def tables(self) -> list[str]:
        """The files of tables from which blocks take combinations."""
        return list(dict.fromkeys(block.table for block in self.matrix if block.table))
