"""Ridge regression on tangent features, federated as sums: the pooled model without pooled data."""
