"""A torch whose CUDA works, or says what a test wants: a module to put before the real one on the import path."""

from pathlib import Path

SOURCE = """
import os
from types import SimpleNamespace

__version__ = "2.13.0+cu130"
version = SimpleNamespace(cuda={cuda!r})
threads = 99


class Ones:
    def add_(self, number):
        return self

    def cpu(self):
        return self


def zeros(count, *, device):
    if os.environ.get("FAKE_CUDA"):
        raise RuntimeError(os.environ["FAKE_CUDA"])
    return Ones()


def set_num_threads(number):
    global threads
    threads = number


def get_num_threads():
    return threads


cuda = SimpleNamespace(
    get_device_name=lambda device: "Fake H200",
    max_memory_reserved=lambda device: 3 * 1024**2,
)
"""


def write_fake_torch(folder: Path, cuda: str | None = "13.0") -> Path:
    """The folder to put on PYTHONPATH, with a torch of that CUDA."""
    folder.mkdir()
    (folder / "torch.py").write_text(SOURCE.replace("{cuda!r}", repr(cuda)))
    return folder
