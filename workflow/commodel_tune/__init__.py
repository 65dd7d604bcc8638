"""Rules for the collectives of MPI libraries: an extension of commodel that finds, verifies and
measures them. The functions are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from commodel.extensions import Extension, Verb, load_function

if TYPE_CHECKING:  # type checkers and editors find the functions here
    from commodel_tune.results import Tuning
    from commodel_tune.tuning import tune

_FUNCTIONS = {
    "Tuning": "commodel_tune.results:Tuning",
    "tune": "commodel_tune.tuning:tune",
}
__all__ = ["EXTENSION", "Tuning", "tune"]

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
    functions=_FUNCTIONS,
)


def __getattr__(name: str) -> object:
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'commodel_tune' has no attribute '{name}'")
    return load_function(_FUNCTIONS[name])
