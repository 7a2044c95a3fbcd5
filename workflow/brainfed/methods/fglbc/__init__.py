"""FGLBC: graph networks on region series with private steps and similarity-weighted aggregation, and the methods of
its comparison.
"""
