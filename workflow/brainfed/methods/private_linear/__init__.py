"""Linear models and a perceptron under differential privacy, with an epsilon for each institution."""
