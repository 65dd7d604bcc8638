"""An overlay network that comes up: from the front-end's call to the last back-end that has attached."""

from commodel.patterns.operations import OVERLAY, Operation, nothing

OPERATION = Operation("overlay-startup", "", nothing, nothing, substrates=(OVERLAY,), unsaid=lambda named: True)
