"""LogGP's machine as TAN's chain experiment sees it."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(loggp_times(**LOGGP), {"L": LOGGP["o_s"] + LOGGP["L"] + LOGGP["o_r"] + 1023 * LOGGP["G"]})
