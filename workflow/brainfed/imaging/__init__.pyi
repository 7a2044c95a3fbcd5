from ._settings import OneViewSettings, ViewSettings, FeatureSettings, SeriesSettings
from ._connectivity import connectivity, to_matrices
from ._quality import typicality, relate_motion
from ._bids_export import ExportFiles, export_bids
from ._tangent import (
    to_triangles, spectral, mean_correlation, Covariances, covariances, write_covariances, load_covariances, log_sum,
    tangent_ledger, whitening_of_fold, crossings_of_all, tangent_of_all, tangent_at, tangent_at_identity,
    tangent_of_fold, displacements,
)
from ._views import join_views

__all__ = [
    "OneViewSettings", "ViewSettings", "FeatureSettings", "SeriesSettings",
    "connectivity", "to_matrices",
    "typicality", "relate_motion",
    "ExportFiles", "export_bids",
    "to_triangles", "spectral", "mean_correlation", "Covariances", "covariances", "write_covariances",
    "load_covariances", "log_sum", "tangent_ledger", "whitening_of_fold", "crossings_of_all", "tangent_of_all",
    "tangent_at", "tangent_at_identity", "tangent_of_fold", "displacements",
    "join_views",
]
