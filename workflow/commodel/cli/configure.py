"""commodel configure: which processes, cores and partition make a kernel fastest, communication included."""

from pathlib import Path

import click

from commodel.cli._output import style_option
from commodel.errors import UserError

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--speeds", type=PATH, required=True, help="Speeds of each kind of process (YAML).")
@click.option(
    "--kernel", type=click.Choice(["gemm", "wave"]), default="gemm", show_default=True, help="SUMMA, or Wave2D."
)
@click.option("--layout", "layouts", multiple=True, help="processes:PATH, or a folder of such tables; repeated.")
@click.option("--cores", help="Besides these: processes of so many cores on the first nodes, e.g. 2,4,6.")
@click.option("--blocks", type=click.IntRange(1, 1 << 20), required=True, help="Side of the matrix; for wave in cells.")
@click.option("--bytes", "size", help="Of a block, or of a cell.  [default: 8 B an element of the speeds' blocks]")
@click.option("--iterations", type=click.IntRange(1, 1 << 30), help="Steps of the wave.  [default: 1]")
@click.option("--params", type=PATH, multiple=True, help="Parameter sets of the platform; repeated.")
@click.option("--platform", required=True, help="Platform whose nodes they sit on, or that was run on.")
@click.option("--experiment", help="Without --params: which experiment's results.  [default: the last one there]")
@click.option("--family", help="Whose prices decide.  [default: taulop if there is one, else the first]")
@click.option("--measure", "count", type=click.IntRange(1, 1000), help="Also measure so many of the best, there.")
@click.option("--out", type=PATH, help="Folder for the partition of every layout, as CSV.")
@style_option
def configure(
    speeds, kernel, layouts, cores, blocks, size, iterations, params, platform, experiment, family, count, out, style
) -> None:
    """Rank layouts of processes by computation and communication together.

    Each layout is balanced by its speeds, in several numbers of columns and with processes of a node
    near each other, and the cheapest of these counts. --measure runs the best ones on the platform, and
    the one that computes fastest, and says what either choice costs beside the fastest of them.

    \b
    commodel configure --speeds params/speeds/fermi.yaml --platform fermi --blocks 128 \\
      --layout params/layouts/fermi --params taulop.yaml
    """
    from commodel.advice.configurations import Problem, core_layouts, ranked, tables_in
    from commodel.advice.evidence import of_files, of_platform
    from commodel.cli._configure import deciding, folder_for, show_ranked, tell
    from commodel.files.quantities import expand
    from commodel.models.speeds import read_speeds
    from commodel.plan.planning import setting_on
    from commodel.units import parse_bytes, parse_count

    if not (layouts or cores):
        raise UserError("give --layout processes:PATH or a folder of such tables, or --cores")
    if iterations and kernel == "gemm":
        raise UserError("--iterations: SUMMA has one for each block of a side; leave it out")
    declared = read_speeds(speeds)
    curves = declared.of(kernel)
    setting = setting_on(platform)
    evidence = of_files(params, setting) if params else of_platform(setting, Path("results"), experiment)[0]
    family = deciding(evidence, family)
    unit = parse_bytes(size) if size else 8 * curves.block**2
    problem = Problem(kernel, blocks, unit, iterations)
    with folder_for(out) as folder:
        tables = [table for layout in layouts for table in tables_in(layout)]
        if cores:
            tables += core_layouts(evidence.setting, expand(cores, parse_count), curves.kinds, folder)
        rows = ranked(problem, tables, declared, evidence, family, folder, lambda best: tell(best, family))
        if count:
            from commodel.cli._configure import checked

            rows = checked(rows, count, problem, evidence.setting, platform)
        show_ranked(rows, family, style, declared.simulated)
