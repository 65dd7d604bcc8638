"""How a tool gets data that most of an overlay network's back-ends have alike."""

from commodel.patterns.operations import OVERLAY, Operation, choice, nothing

MODES = ("binned", "all")

OPERATION = Operation(
    "overlay-classes",
    "the data of each back-end, of which there are four kinds",
    nothing,
    nothing,
    parameters=(
        choice(
            "mode",
            MODES,
            "checksums sorted into classes on their way up, then the data of one back-end of each; or of all",
            overlay=True,
        ),
    ),
    substrates=(OVERLAY,),
    unsaid=lambda named: True,
)
