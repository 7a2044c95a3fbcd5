"""Where the time of one training on a GPU goes: to kernels, to copies, or to the Python that starts them.

    python benchmarks/gpu_profile.py [--device cuda] [--rounds 2] [--methods fedni fedsage-plus fedgcn]
    python benchmarks/gpu_profile.py --device cpu --features 500     (a trial of the script)

Trains each method (and its generator) of Table V on one split of `table5_on_gpu.py` for some rounds, after a warm one,
three times: alone, under torch's profiler, and under Python's. It prints seconds alone, the share of them in which the
device computed or copied (its time under the profiler over the seconds alone), launches, copies, waits for the device,
the largest kernels, and the functions of Python that took longest.
"""

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import torch
from made_up_cohort import MadeUpCohort
from matrix_rate import synchronise
from table5_on_gpu import Table, options
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from brainfed.runtime.jobs import Run

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


class ProfiledTable(Table):
    """A table that profiles what it trains."""

    def __init__(self, run: Run, precision: str, rounds: int, largest: int) -> None:
        super().__init__(run, precision, rounds)
        self.largest = largest

    def train(self, name: str, work: str, start: Callable[[], Any]) -> Any:
        """Train three times and print the row `name`."""
        result = super().train(name, work, start)
        activities = [ProfilerActivity.CPU]
        if self.run.device.startswith("cuda"):
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities) as seen:
            start()
            synchronise(torch.device(self.run.device))
        calls = seen.key_averages()
        kernels = [call for call in calls if call.device_type == DeviceType.CUDA]
        busy = sum(call.self_device_time_total for call in kernels) / 1e6
        count = {key: sum(call.count for call in calls if call.key in names) for key, names in counted().items()}
        print(
            f"\n{name}: {self.seconds[name]:.2f} s alone, device busy {busy:.2f} s "
            f"({busy / self.seconds[name]:.2f}), {count['launches']} launches, {count['copies']} copies, "
            f"{count['waits']} waits"
        )
        for call in sorted(kernels, key=lambda call: -call.self_device_time_total)[: self.largest]:
            print(f"  {call.self_device_time_total / 1e3:9.1f} ms {call.count:7}  {call.key[:90]}")
        python = cProfile.Profile()
        python.runcall(start)
        stats = pstats.Stats(python).stats  # type: ignore[attr-defined]
        rows = sorted(((own, calls, place) for place, (_, calls, own, _, _) in stats.items()), reverse=True)
        for own, calls, (file, _, function) in rows[: self.largest]:
            print(f"  {own * 1e3:9.1f} ms {calls:7}  Python: {file.rpartition('/brainfed/')[2][-50:]} {function[:60]}")
        return result


def counted() -> dict[str, tuple[str, ...]]:
    """Calls of CUDA's runtime by what they are."""
    return {"launches": LAUNCHES, "copies": ("cudaMemcpyAsync",), "waits": WAITS}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--largest", type=int, default=8, help="kernels and functions to print")
    parser.add_argument("--methods", nargs="+", default=["fedni", "fedsage-plus", "fedgcn"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    run = Run(device=arguments.device, progress=lambda *_, **__: None)
    cohort = MadeUpCohort(arguments.features, stored="float16")
    print(f"{arguments.device}, {arguments.threads} threads, d = {arguments.features}, {arguments.rounds} rounds")
    Table(run, arguments.precision, 1).repeat(cohort, arguments.methods)
    ProfiledTable(run, arguments.precision, arguments.rounds, arguments.largest).repeat(cohort, arguments.methods)


if __name__ == "__main__":
    main()
