from ._stage import Regime, stage_name, Stage

__all__ = ["Regime", "stage_name", "Stage"]
