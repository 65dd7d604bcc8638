"""One batch: its programs are started, watched, and started again where they stopped. Nothing that was sampled is
lost.
"""
