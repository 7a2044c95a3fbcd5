"""GAHFL: institutions with recurrent networks of their own, joined by distillation on public subjects, and the
methods of its comparison.
"""
