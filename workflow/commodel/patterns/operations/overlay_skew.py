"""How far the clocks of an overlay network's back-ends are ahead: found along the tree, or by the front-end itself."""

from commodel.patterns.operations import OVERLAY, Operation, choice, nothing

MODES = ("tree", "direct", "tree-error", "direct-error")

OPERATION = Operation(
    "overlay-skew",
    "",
    nothing,
    nothing,
    parameters=(
        choice(
            "mode",
            MODES,
            "time of 100 rounds over each link, or to each back-end (direct); or how far off their skews of 10 ms are",
            overlay=True,
        ),
    ),
    substrates=(OVERLAY,),
    unsaid=lambda named: True,
)
