"""GCFL and GCFL+: institutions with similar gradients form clusters and share a graph isomorphism network; also its
baselines.
"""
