"""Charts as Vega-Lite specifications. What the page draws, what it shows without a script, and what
`commodel report --pictures` writes are the same specification."""
