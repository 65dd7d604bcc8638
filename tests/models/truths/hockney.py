"""LogGP's machine as Hockney sees it."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(loggp_times(**LOGGP), {"alpha.a": LOGGP["o_s"] + LOGGP["L"] + LOGGP["o_r"], "beta.a": LOGGP["G"]})
