"""Parameter sets × patterns become prices with intervals."""
