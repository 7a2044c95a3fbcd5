"""Scaling of views in plain loops: one subject and one column at a time, all institutions in one list."""

import numpy as np

from brainfed.samples import MethodInputs


def scaled_plainly(inputs: MethodInputs, fold: int, rows: np.ndarray) -> np.ndarray:
    """The views (n, d) of a fold, fitted on the training subjects `rows`, as the formula has it."""
    blocks = []
    for view in inputs.views:
        values = inputs.features[fold if len(inputs.features) > 1 else 0][:, view.columns].astype(np.float64)
        fitting = [i for i in np.flatnonzero(rows) if view.present[i]]
        z = np.zeros_like(values)
        for column in range(values.shape[1]):
            everybody = [values[i, column] for i in fitting]
            for i in range(len(values)):
                site = inputs.phenotypes.site[i]
                own = [values[j, column] for j in fitting if inputs.phenotypes.site[j] == site]
                mean = np.mean(own if own and view.centre == "site" and site >= 0 else everybody) if everybody else 0.0
                trains = inputs.institution[i] in inputs.institution[inputs.training(fold)]
                if view.centre == "site" and view.unseen_site == "own" and site >= 0 and not (own and trains):
                    here = [j for j in range(len(values)) if inputs.phenotypes.site[j] == site and view.present[j]]
                    here = [values[j, column] for j in here if inputs.institution[j] == inputs.institution[i]]
                    mean = np.mean(here) if here else 0.0
                z[i, column] = values[i, column] - mean
            if view.standardise:
                deviation = np.sqrt(np.mean([z[i, column] ** 2 for i in fitting])) if fitting else 0.0
                z[:, column] = z[:, column] / deviation if deviation > 1e-9 else 0.0
            if view.clip is not None:
                z[:, column] = [min(max(value, -view.clip), view.clip) for value in z[:, column]]
        z[~view.present] = 0.0
        tau = np.mean([np.sum(z[i] ** 2) for i in np.flatnonzero(rows)])
        blocks.append(np.sqrt(view.weight / tau) * z if tau > 1e-18 else np.zeros_like(z))
    return np.concatenate(blocks, axis=1)
