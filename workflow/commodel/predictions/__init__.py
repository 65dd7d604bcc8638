"""Parameter sets × patterns become prices with intervals. An interval widens beyond what was probed."""
