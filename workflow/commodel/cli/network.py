"""commodel network: how far apart the nodes of an allocation are, by the times of their pairs."""

from pathlib import Path

import click

from commodel.cli._output import show, style_option, waiting
from commodel.errors import UserError
from commodel.units import format_seconds


@click.command()
@click.argument("experiment")
@click.option("--platform", help="Of which platform.  [default: of all]")
@click.option("--levels", is_flag=True, help="Print `levels` for the platform's file: Slurm's, or the learned ones.")
@style_option
def network(experiment: str, platform: str | None, levels: bool, style: str) -> None:
    """Show classes of distance, groups of nodes and slow nodes, by an EXPERIMENT with `probes: [auto, nodepairs]`.

    \b
    commodel network mine
    commodel network mine --platform cluster --levels
    """
    from commodel.compare.network import classes, of_results, written
    from commodel.errors import one_line
    from commodel.files.results_folder import Results
    from commodel.report.sections.network import describe_mixed_classes, nodes_of, sentences

    with waiting("sorting the nodes"):
        seen = of_results(Results.of(Path("results") / experiment))
    chosen = [entry for entry in seen if platform in (None, entry.platform)]
    if not chosen:
        where = f" on platform '{platform}'" if platform else ""
        wanted = "wanted an experiment with `probes: [auto, nodepairs]`"
        raise UserError(f"found no times of pairs of nodes{where} in results/{experiment}, {wanted}")
    if not levels and style != "table":
        show([{"platform": entry.platform} | row for entry in chosen for row in nodes_of(entry)], style)
        return
    for entry in chosen:
        click.echo(f"# {entry.platform}{' (simulated)' if entry.simulated else ''}")
        if levels:
            click.echo(
                "\n".join(
                    [f"# {one_line(line)}" for line in describe_mixed_classes(entry)] + [written(entry.hierarchy)]
                )
            )
            continue
        rows = classes(entry).to_dict("records")
        show([_shown(row) for row in rows], style)
        click.echo("\n" + "\n".join(one_line(line) for line in sentences(entry)))


def _shown(row: dict) -> dict:
    return {
        "class": row["class"],
        "pairs": row["pairs"],
        "latency": format_seconds(row["latency"]),
        "from": format_seconds(row["latency_low"]),
        "to": format_seconds(row["latency_high"]),
        "MB/s": row["bandwidth"] / 1e6,
        "from ": row["bandwidth_low"] / 1e6,
        "to ": row["bandwidth_high"] / 1e6,
    }
