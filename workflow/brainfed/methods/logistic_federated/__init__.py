"""Logistic regression over institutions: the pooled solution from sums, or federated averaging."""
