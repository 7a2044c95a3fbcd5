"""Graph convolution on the population graph, at each institution alone, on pooled data and federated."""
