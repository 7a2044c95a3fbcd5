"""A site that is broken, by this folder on the PYTHONPATH of its processes.

`BROKEN` is `NaN 4` or `shape 4`: its numbers of that round; or `clock 120`: seconds that its clock is ahead.
"""

import os
import sys
import time
from dataclasses import replace
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

HOME = "brainfed.sites.home"
KIND, NUMBER = os.environ["BROKEN"].split()


def broken(array):
    found = array.copy()
    if KIND == "shape":
        return found[..., :-1]
    found.flat[0] = float("nan")
    return found


class Breaking(MetaPathFinder):
    """Changes `Home.ask` when it is imported: importing it here would start torch in every process."""

    def find_spec(self, name, path, target=None):
        del path, target
        if name != HOME:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            ask = module.Home.ask

            def asking(home, request):
                if request.kind == "reply" and request.about["round"] == int(NUMBER):
                    arrays = {name: broken(array) for name, array in request.tensors.items()}
                    request = replace(request, tensors=arrays)
                return ask(home, request)

            module.Home.ask = asking

        spec.loader.exec_module = exec_module
        return spec


def ahead(clock=time.time):
    return clock() + int(NUMBER)


if KIND == "clock":
    time.time = ahead
else:
    sys.meta_path.insert(0, Breaking())
