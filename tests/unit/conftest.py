"""What rooms of the unit tests share."""

import pytest

from brainfed.federation import Pace
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.runtime.jobs._checkpoints import checkpoint_path


class CutOffError(Exception):
    """Ends a training in the middle."""


@pytest.fixture
def resumed(tmp_path, monkeypatch):
    """`resumed(train, report)`: train (of a Run), cut off at a report of its progress, and train again.

    Returns what the second training finds, and the units of work that it reports. Every round is kept; the one of the
    last report is not yet.
    """

    def found(train, report):
        checkpoint = Checkpoint(checkpoint_path(tmp_path / "predictions.parquet", "0a"), "0a")
        first, second = [], []

        def cut_off(done, *_, **__):
            first.append(done)
            if len(first) == report:
                raise CutOffError

        with pytest.raises(CutOffError):
            train(Run(checkpoint=checkpoint, progress=cut_off))
        return train(Run(checkpoint=checkpoint, progress=lambda done, *_, **__: second.append(done))), second

    monkeypatch.setattr(Pace, "due", lambda _: True)
    return found
