"""The results folder of the tests of reports, and the function that plans a wrong experiment."""

from tests.cli.test_broken_experiments import plan_invalid  # noqa: F401  a fixture
from tests.reports.conftest import comparison, folder, inputs, original  # noqa: F401  fixtures
