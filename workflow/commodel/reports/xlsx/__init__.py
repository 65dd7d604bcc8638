"""Writes a report as a workbook: native tables and charts, values only."""
