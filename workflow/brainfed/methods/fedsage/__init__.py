"""FedSage+: a federated GraphSAGE classifier on graphs with generated neighbours."""
