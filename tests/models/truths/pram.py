"""LogGP's machine as a PRAM sees it: only its local work."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(loggp_times(**LOGGP), {"gamma": LOGGP["gamma"]})
