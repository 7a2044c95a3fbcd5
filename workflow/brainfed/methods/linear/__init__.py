"""Ridge, support vectors and logistic regression, locally and on pooled data.

The door has the solver and the fits that other linear families use.
"""
