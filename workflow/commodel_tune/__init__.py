"""Rules for the collectives of MPI libraries: an extension of commodel that finds, verifies and
measures them."""

from commodel.extensions import Extension, Verb

EXTENSION = Extension(
    title="rules for the collectives of MPI libraries, verified and measured",
    interface=1,
    verbs={
        "tune": Verb(
            "commodel_tune.commands:tune",
            "Measure and write rules for the MPI library's collectives.",
            "Ask",
        )
    },
    functions={"Tuning": "commodel_tune.results:Tuning", "tune": "commodel_tune.tuning:tune"},
)
