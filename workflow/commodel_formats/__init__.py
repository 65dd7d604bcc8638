"""Files of further benchmarks and tools: an extension of commodel, whose core reads OSU, IMB and
CSV itself."""

from commodel.extensions import Extension, Verb

EXTENSION = Extension(
    title="files of further benchmarks and tools",
    interface=1,
    formats=(
        "commodel_formats.microbench",
        "commodel_formats.mpiblib",
        "commodel_formats.netgauge",
        "commodel_formats.pico",
        "commodel_formats.reprompi",
        "commodel_formats.skampi",
        "commodel_formats.taulop",
    ),
    subcommands={
        "import": {
            "netgauge": Verb(
                "commodel_formats.commands:import_netgauge",
                "Read LogGP parameters that Netgauge printed or wrote.",
            ),
            "taulop": Verb(
                "commodel_formats.commands:import_taulop",
                "Read parameter tables of the τ–Lop tools: SHM.txt, IB.txt or TCP.txt, gamma.txt.",
            ),
        },
        "export": {
            "extrap": Verb(
                "commodel_formats.commands:export_extrap",
                "Write the measurements of observations.csv or comparison.csv for Extra-P.",
            ),
            "simgrid": Verb(
                "commodel_formats.commands:export_simgrid",
                "Write a simulated platform from a parameter set of LogGP or Hockney.",
            ),
        },
    },
    exports={
        "extrap": "commodel_formats.exporters:export_extrap",
        "simgrid": "commodel_formats.exporters:export_simgrid",
    },
)
