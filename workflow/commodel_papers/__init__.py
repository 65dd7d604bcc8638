"""The figures and tables of five papers, rebuilt: an extension of commodel. Each module has the
`PAPER` of one."""

from commodel.extensions import Extension

EXTENSION = Extension(
    title="figures and tables of five papers, rebuilt",
    interface=1,
    papers=(
        "commodel_papers.cluster",
        "commodel_papers.lop",
        "commodel_papers.mrnet",
        "commodel_papers.tan",
        "commodel_papers.taulop",
    ),
)
