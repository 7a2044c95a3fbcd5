"""Flower's functions that a study between sites calls though Flower does not document them, and the versions with them.

`docs/reference/borrowed.md` says what each is for. All versions that were tested have the same parameters.
"""

import re
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from inspect import Parameter, signature
from typing import Any, Final

from brainfed.runtime import UserError

TESTED: Final = ((1, 40), (1, 43))
"""The first version that was tested, and the first after the last."""
MODULES: Final = ("superlink", "node", "program", "_secure_coordinator")
"""All that import Flower's names, themselves or what they import."""
_OF_A_TASK: Final = ("request", "state", "task")
_HANDLERS: Final = "flwr.supernode.servicer.runtime.runtime_handlers:"
CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "flwr.superlink.main:create_app": (),
    "flwr.superlink.servicer.control.control_handlers:register_node": ("request", "account", "state"),
    "flwr.superlink.servicer.runtime.runtime_handlers:acquire_task": ("request", "state"),
    "flwr.supercore.protobuf.client:ProtobufClient.__init__": ("self", "base_url", "interceptors"),
    "flwr.supernode.start_client_internal:start_client_internal": (
        *("state_factory", "server_address", "node_config", "root_certificates", "insecure", "authentication_keys"),
        "isolation",
    ),
    f"{_HANDLERS}acquire_task": ("request", "state"),
    f"{_HANDLERS}pull_task_input": _OF_A_TASK,
    f"{_HANDLERS}pull_messages": _OF_A_TASK,
    f"{_HANDLERS}pull_object": _OF_A_TASK,
    f"{_HANDLERS}confirm_message_received": _OF_A_TASK,
    f"{_HANDLERS}push_messages": _OF_A_TASK,
    f"{_HANDLERS}push_object": _OF_A_TASK,
    f"{_HANDLERS}push_task_output": _OF_A_TASK,
    "flwr.supernode.runtime.run_clientapp:pull_task_input": ("client",),
    "flwr.supernode.runtime.run_clientapp:push_message": ("client", "message", "context"),
    "flwr.supernode.runtime.run_clientapp:push_task_output": ("client", "context", "sub_status", "details"),
    "flwr.supercore.heartbeat:HeartbeatSender": ("heartbeat_fn",),
    "flwr.common.secure_aggregation.crypto.shamir:create_shares": ("secret", "threshold", "num"),
    "flwr.common.secure_aggregation.crypto.shamir:combine_shares": ("share_list",),
}
"""`module:function` -> names of the parameters that it is called with."""


def require_flower() -> None:
    """Say so if Flower's version was not tested; nothing of it is imported if it was.

    Raises:
        PackageNotFoundError: Flower is not installed.
        UserError: it was not tested, and lacks something.
    """
    version = metadata.version("flwr")
    if TESTED[0] <= tuple(map(int, re.findall(r"\d+", version)[:2])) < TESTED[1]:
        return
    first, after = (".".join(str(part) for part in each) for each in TESTED)
    if missing := lacking():
        raise UserError(
            f"expected Flower {first} or later, and before {after}, found {version}, with which a study cannot start "
            f"({missing}); run `make install-sites`."
        )
    print(
        f"Flower {version} was not tested, as {first} or later and before {after} were; it has all that a study calls",
        file=sys.stderr,
    )


def lacking() -> str:
    """What this version of Flower lacks first; empty: it has all."""
    try:
        for module in MODULES:
            import_module(f"brainfed.sites.flower.{module}")
        for place, used in CALLED.items():
            name, _, function = place.partition(":")
            called: Any = import_module(name)
            for part in function.split("."):
                called = getattr(called, part)
            there = signature(called).parameters
            needed = {each.name for each in there.values() if each.default is Parameter.empty and each.kind < 2}
            if not needed <= set(used) <= set(there):
                return f"{function} of {name} has other parameters"
    except (ImportError, AttributeError) as error:
        return str(error).partition(" (")[0]
    return ""
