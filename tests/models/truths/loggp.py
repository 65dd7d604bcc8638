"""A synthetic LogGP machine."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(loggp_times(**LOGGP), {key: LOGGP[key] for key in ("L", "o_s", "o_r", "g", "G")})
