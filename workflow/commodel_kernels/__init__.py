"""Data-parallel kernels over processes of different speeds: an extension of commodel.

SUMMA and the wave equation as operations, partitions of a matrix by measured speeds, and
predictions of what a kernel takes. The functions are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from commodel.extensions import Extension, Native, ReportSection, Verb, load_function

if TYPE_CHECKING:  # type checkers and editors find the functions here
    from commodel_kernels.kernel_predictions import KernelPredictions, predict_kernel
    from commodel_kernels.layout_rankings import LayoutRanking, advise_layouts
    from commodel_kernels.measured_speeds import MeasuredSpeeds, measure_speeds
    from commodel_kernels.partitioning import Partition, partition

_FUNCTIONS = {
    "KernelPredictions": "commodel_kernels.kernel_predictions:KernelPredictions",
    "LayoutRanking": "commodel_kernels.layout_rankings:LayoutRanking",
    "MeasuredSpeeds": "commodel_kernels.measured_speeds:MeasuredSpeeds",
    "Partition": "commodel_kernels.partitioning:Partition",
    "advise_layouts": "commodel_kernels.layout_rankings:advise_layouts",
    "measure_speeds": "commodel_kernels.measured_speeds:measure_speeds",
    "partition": "commodel_kernels.partitioning:partition",
    "predict_kernel": "commodel_kernels.kernel_predictions:predict_kernel",
}
__all__ = [
    "EXTENSION",
    "KernelPredictions",
    "LayoutRanking",
    "MeasuredSpeeds",
    "Partition",
    "advise_layouts",
    "measure_speeds",
    "partition",
    "predict_kernel",
]

EXTENSION = Extension(
    title="kernels over processes of different speeds: SUMMA, the wave equation, partitions",
    interface=1,
    operations=("commodel_kernels.summa", "commodel_kernels.wave2d"),
    algorithms=("commodel_kernels.summa_paper", "commodel_kernels.wave2d_paper"),
    verbs={
        "partition": Verb(
            "commodel_kernels.commands:partition",
            "Balance a matrix over processes of different speeds.",
            "Ask",
        )
    },
    subcommands={
        "predict": {
            "kernel": Verb(
                "commodel_kernels.commands:predict_kernel",
                "Predict the communication time of a kernel.",
            )
        },
        "advise": {
            "layouts": Verb(
                "commodel_kernels.commands:advise_layouts",
                "Rank layouts of processes for a kernel by computation plus communication.",
            )
        },
        "measure": {
            "speeds": Verb(
                "commodel_kernels.commands:measure_speeds",
                "Measure the speed of each kind of process over the size of its share.",
            )
        },
    },
    functions=_FUNCTIONS,
    sections={
        "Kernels": ReportSection(
            "commodel_kernels.report:make_sections",
            "answers",
            contents="partitions, speeds of processes, and single iterations",
        )
    },
    native=tuple(
        Native(
            toolchain, folders=("native",), sources=("native/Makefile", "native/programs/*.[ch]")
        )
        for toolchain in ("mpi", "smpi")
    ),
    checks=("commodel_kernels.devices:describe_devices",),
    columns="columns.csv",
    inputs={"speeds": "commodel_kernels.speeds:read_speeds"},
)


def __getattr__(name: str) -> object:
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'commodel_kernels' has no attribute '{name}'")
    return load_function(_FUNCTIONS[name])
