"""Charts as Vega-Lite specifications. What the page draws, what stands there without a script, and what
`commodel report --pictures` writes are the same specification."""
