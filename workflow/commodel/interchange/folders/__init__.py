"""Folders of measurements in any formats (`reading`), and the table of a platform's measured times to
which they are appended (`tables`)."""
