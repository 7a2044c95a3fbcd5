"""The panels that any method may have, in the order of the page at each place."""

from brainfed.reporting.panels.opening import mixed_versions, own_figure, poisoned, scopes
from brainfed.reporting.panels.panel import Panel
from brainfed.reporting.panels.scores import drops, patterns, predictions, probabilities, scores, tests, twins
from brainfed.reporting.panels.training import audit, costs, exchanges, learning

GENERIC: tuple[Panel, ...] = (
    learning.CURVES,
    learning.CLUSTERS,
    poisoned.PANEL,
    mixed_versions.PANEL,
    own_figure.PANEL,
    scopes.PANEL,
    scores.PANEL,
    tests.PANEL,
    predictions.PANEL,
    twins.PANEL,
    drops.PANEL,
    patterns.PANEL,
    probabilities.CALIBRATION,
    probabilities.SUBGROUPS,
    exchanges.PANEL,
    audit.PANEL,
    costs.PANEL,
)
