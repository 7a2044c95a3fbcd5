"""Controls in place of generated nodes: random nodes (FedNI Fig. 4), institution means and shuffled features.

Controls have the generator's numbers of nodes and their parents. Means and shuffled features keep edges and phenotypes;
random nodes have their own.
"""

import numpy as np
from numpy.typing import NDArray

from brainfed.inpainting.inputs import Generated, InpaintingInputs

IntArray = NDArray[np.int64]


def random_nodes(inputs: InpaintingInputs, parents: IntArray) -> Generated:
    """Random inpainting: each feature normal as in the institution, sex and age those of a random member."""
    home = inputs.institution[parents]
    features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
    alike = np.zeros(len(parents), dtype=np.int64)
    for institution in np.unique(home):
        mine, members = home == institution, inputs.members(institution)
        random = inputs.streams.numpy("random-inpainting", inputs.part, int(institution))
        known = inputs.features[members].astype(np.float64)
        mean, sd = known.mean(axis=0).astype(np.float32), known.std(axis=0).astype(np.float32)
        features[mine] = mean + sd * random.standard_normal((int(mine.sum()), len(mean)), dtype=np.float32)
        alike[mine] = random.choice(members, int(mine.sum()))
    return Generated(features, inputs.sex[alike], inputs.age[alike])


def institution_means(inputs: InpaintingInputs, parents: IntArray) -> NDArray[np.float32]:
    """Features (g, d): every node is the mean of its parent's institution."""
    features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
    home = inputs.institution[parents]
    for institution in np.unique(home):
        known = inputs.features[inputs.members(int(institution))]
        features[home == institution] = known.mean(axis=0, dtype=np.float64)
    return features


def shuffled_features(
    inputs: InpaintingInputs, parents: IntArray, features: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Features (g, d), permuted inside each institution."""
    place = np.arange(len(parents))
    home = inputs.institution[parents]
    for institution in np.unique(home):
        own = np.flatnonzero(home == institution)
        random = inputs.streams.numpy("shuffled-nodes", inputs.part, int(institution))
        place[own] = random.permutation(own)
    return features[place]
