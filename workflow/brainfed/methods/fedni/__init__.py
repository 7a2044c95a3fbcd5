"""FedNI: federated graph convolution on a population graph with generated neighbours, and its variant with
centroids.
"""
