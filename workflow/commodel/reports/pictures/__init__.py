"""Charts as Vega-Lite specifications. The page's script, its static drawings and `commodel report
--pictures` use the same specification."""
