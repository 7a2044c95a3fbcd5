"""Names of a module's parameters in the ledger and in the noise streams."""

import torch


def wire_name(parameter: str) -> str:
    """`weight_own_0` of a module is `weight-own-0` on the wire."""
    return parameter.replace("_", "-")


def parameters_by_wire_name(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The learnable tensors of a module."""
    return {wire_name(name): parameter for name, parameter in module.named_parameters()}
