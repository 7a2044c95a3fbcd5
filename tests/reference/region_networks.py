"""ST-GCN and the graph network without time for one subject, sum by sum (FGLBC eq. 4 and 5), in NumPy."""

import numpy as np


def importance(adjacency, weight):
    found = np.empty_like(adjacency)
    for i, j in np.ndindex(*adjacency.shape):
        found[i, j] = adjacency[i, j] * (weight[i, j] ** 2 + weight[j, i] ** 2) / 2
    return found


def spatial(features, adjacency, weight):
    """Eq. 5 at every time: (T, R, c') from features (T, R, c) and W_SG (c, c')."""
    return np.stack([adjacency @ at_time @ weight for at_time in features])


def temporal(features, kernel, stride):
    """(ceil(T / stride), R, c') from features (T, R, c) and a kernel (c', c, k), zeros outside the window."""
    time, taps = len(features), kernel.shape[2]
    rows = []
    for centre in range(0, time, stride):
        total = np.zeros((features.shape[1], len(kernel)))
        for tap in range(taps):
            moment = centre + tap - taps // 2
            if 0 <= moment < time:
                total += features[moment] @ kernel[:, :, tap].T
        rows.append(total)
    return np.stack(rows)


def group_norm(features, groups, scale, shift):
    """Features (..., c), each group of neighbouring channels normalised over all axes."""
    found = np.empty_like(features)
    size = features.shape[-1] // groups
    for group in range(groups):
        own = features[..., group * size : (group + 1) * size]
        found[..., group * size : (group + 1) * size] = (own - own.mean()) / np.sqrt(own.var() + 1e-5)
    return found * scale + shift


def st_gcn(weights, strides, groups, window, adjacency):
    """Logits (C,) of a window (T, R); weights by the names of the module."""
    if "importance.weight" in weights:
        adjacency = importance(adjacency, weights["importance.weight"])
    features = window[:, :, None]
    for number, stride in enumerate(strides):
        block = f"blocks.{number}."
        found = spatial(features, adjacency, weights[f"{block}kernels.spatial"].T)
        found = temporal(found, weights[f"{block}kernels.temporal"], stride)
        found = group_norm(found, groups, weights[f"{block}norm.weight"], weights[f"{block}norm.bias"])
        residual = stride == 1 and features.shape[2] == found.shape[2]
        features = np.maximum(found + features if residual else found, 0)
    return weights["readout.weight"] @ features.mean(axis=(0, 1)) + weights["readout.bias"]


def region_gnn(weights, layers, groups, window, adjacency):
    """Logits (C,) of a window (T, R), whose T values are the features of the regions."""
    if "importance.weight" in weights:
        adjacency = importance(adjacency, weights["importance.weight"])
    features = window.T
    for number in range(layers):
        layer = f"convolutions.{number}."
        found = adjacency @ features @ weights[f"{layer}channels.weight"][:, :, 0].T
        found = group_norm(found, groups, weights[f"{layer}norm.weight"], weights[f"{layer}norm.bias"])
        features = np.maximum(found, 0)
    return weights["readout.weight"] @ features.mean(axis=0) + weights["readout.bias"]
