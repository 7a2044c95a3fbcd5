"""The server's memory of the logits of samples that it predicted right (GAHFL Sec. II-C, P*)."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class LogitPool:
    """A running mean of the right logits of every public sample.

    E_0 = lg, E_t = phi E_{t-1} + (1 - phi) lg, where t counts the batches in which the sample was predicted right.
    With phi = 0 the pool holds the last right logits, as FedGEMS' global pool does.

    Args:
        folds: number of folds F.
        rows: number of public samples P of the fold that has most.
        classes: number of classes C.
        momentum: phi, in [0, 1].
        device: of the pool.
        dtype: of the logits.
    """

    def __init__(
        self,
        folds: int,
        rows: int,
        classes: int,
        momentum: float,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.rows, self.momentum = rows, momentum
        # The last row takes what `update` leaves out.
        self._logits = torch.zeros(folds, rows + 1, classes, device=device, dtype=dtype)
        self._known = torch.zeros(folds, rows + 1, device=device, dtype=torch.bool)

    def logits(self, rows: Tensor) -> Tensor:
        """(F, B, C) logits of the samples at `rows` (F, B); 0 for a sample that is not known."""
        return self._logits.gather(1, rows[..., None].expand(-1, -1, self._logits.shape[-1]))

    def known(self, rows: Tensor) -> Tensor:
        """(F, B) bool, whether the samples at `rows` (F, B) were ever predicted right."""
        return self._known.gather(1, rows)

    def clear(self) -> None:
        """Forget all samples."""
        self._known.zero_()

    @torch.no_grad()
    def update(self, rows: Tensor, logits: Tensor, right: Tensor) -> None:
        """Take up the logits of the samples that are right now.

        Args:
            rows: (F, B) positions.
            logits: (F, B, C).
            right: (F, B) bool.
        """
        old = self.logits(rows)
        mean = self.momentum * old + (1 - self.momentum) * logits
        new = torch.where(self.known(rows)[..., None], mean, logits).to(old.dtype)
        places = torch.where(right, rows, self.rows)
        self._logits.scatter_(1, places[..., None].expand_as(new), new)
        self._known.scatter_(1, places, True)

    def state(self) -> dict[str, NDArray[Any]]:
        """Logits (F, P, C) and known (F, P)."""
        return {
            "logits": self._logits[:, : self.rows].contiguous().cpu().numpy(),
            "known": self._known[:, : self.rows].contiguous().cpu().numpy(),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
        self._logits[:, : self.rows] = torch.from_numpy(arrays["logits"]).to(self._logits.device)
        self._known[:, : self.rows] = torch.from_numpy(arrays["known"]).to(self._known.device)
