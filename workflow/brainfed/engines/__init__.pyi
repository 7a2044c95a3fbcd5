from ._clients import (
    wire_name, parameters_by_wire_name, content_of, padded_labels, axes_of, local_steps, Batches, Curves,
    require_finite, NetworkClients,
)
from ._crossings import Row, record_pooling, series_content, sizes_of, crossings_of_files, in_order
from ._training import (
    Server, averaging, Schedule, Training, train_networks, train_by_round, run_rounds, run_until_finished,
)

__all__ = [
    "wire_name", "parameters_by_wire_name", "content_of", "padded_labels", "axes_of", "local_steps", "Batches",
    "Curves", "require_finite", "NetworkClients",
    "Row", "record_pooling", "series_content", "sizes_of", "crossings_of_files", "in_order",
    "Server", "averaging", "Schedule", "Training", "train_networks", "train_by_round", "run_rounds",
    "run_until_finished",
]
