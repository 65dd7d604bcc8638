"""An extension of commodel. This module only names the others, which are imported when their things are used."""

from commodel.extensions import Extension

EXTENSION = Extension(
    title="max-rate model, broadcast along two chains, times in JSON lines",
    interface=1,
    models=("commodel_maxrate.model",),
    probes=("commodel_maxrate.probe",),
    algorithms=("commodel_maxrate.two_chains",),
    formats=("commodel_maxrate.json_lines",),
)
