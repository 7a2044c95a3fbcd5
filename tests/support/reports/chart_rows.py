"""Data of a Vega-Lite chart, as a viewer of its specification finds them."""

import pandas as pd


def rows_of(chart, *columns):
    """The first table of the chart with these columns; with none given, the first with the rows of intervals."""
    wanted = set(columns or ("method", "mean", "shown"))
    for table in chart.to_dict()["datasets"].values():
        if wanted <= set(table[0]):
            return pd.DataFrame(table)
    raise AssertionError(f"no table of the chart has the columns {sorted(wanted)}")


def panel_of(chart, place):
    """One of several panels side by side."""
    return chart.hconcat[place]
