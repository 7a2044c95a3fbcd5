from ._shell import job_shell

__all__ = ["job_shell"]
