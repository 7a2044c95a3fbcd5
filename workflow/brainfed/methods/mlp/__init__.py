"""FedMLP: a perceptron on the imaging features, without a graph, local, pooled and federated."""
