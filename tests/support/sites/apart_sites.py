"""Institutions apart, in the threads of one test: each has its own subjects, and a coordinator answers them all."""

import threading
from dataclasses import replace
from functools import partial
from queue import Queue

import numpy as np

from brainfed.graphs import Graph
from brainfed.samples import Phenotypes
from brainfed.sites import Coordinator
from brainfed.sites.home import Home, at_home

WAIT = 120
"""Seconds after which a test of a site that is never answered fails."""


class Threads:
    """A coordinator that answers the requests of sites in threads, of which one at a time computes.

    Torch draws initial weights from the one generator of a process.
    """

    def __init__(self, names):
        self.coordinator = Coordinator(names)
        self.asked = {code: [] for code in names}
        self._waiting = {}
        self._answers = {code: Queue() for code in names}
        self._baton = threading.Lock()

    def run(self, work):
        """(code -> result) of `work(code, ask)` at all sites; raises the first error of any."""
        results = {}

        def at_site(code):
            with self._baton:
                try:
                    results[code] = work(code, partial(self.ask, code))
                except BaseException as error:
                    self.stop(error)
                    results.setdefault("error", error)

        threads = [threading.Thread(target=at_site, args=(code,)) for code in self._answers]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if "error" in results:
            raise results["error"]
        return results

    def ask(self, code, request):
        """The answer to a request of one site, once all have asked."""
        self.asked[code].append(request)
        self._waiting[code] = request
        for answered, packet in self.coordinator.answers(self._waiting).items():
            del self._waiting[answered]
            self._answers[answered].put(packet)
        self._baton.release()
        try:
            found = self._answers[code].get(timeout=WAIT)
        finally:
            self._baton.acquire()
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self, error):
        """End the waiting of all sites."""
        for answers in self._answers.values():
            answers.put(error)


def trained_apart(train, inputs, only, job="job"):
    """(code -> outcome, threads) of `train(inputs)` at every institution of `inputs`, each with `only` its subjects."""
    threads = Threads(dict(enumerate(inputs.institutions)))

    def work(code, ask):
        name = inputs.institutions[code]
        return train(at_home(only(inputs, code), inputs.institutions, name, Home(code, ask, job)))

    return threads.run(work), threads


def only_nodes(inputs, code):
    """The `MethodInputs` of one institution, as its own cohort has them."""
    own, people = inputs.members(code), inputs.phenotypes
    known = {name: getattr(people, name)[own] for name in ("site", "sex", "age", "mean_fd")}
    return replace(
        inputs,
        features=tuple(features[own] for features in inputs.features),
        graphs=tuple(block(graph, own) for graph in inputs.graphs),
        phenotypes=Phenotypes(**known),
        **_alone(inputs, code),
    )


def only_graphs(inputs, code):
    """The `GraphInputs` of one institution."""
    return replace(
        inputs, graphs=tuple(each.of(inputs.members(code)) for each in inputs.graphs), **_alone(inputs, code)
    )


def only_series(inputs, code):
    """The `SeriesInputs` of one institution."""
    series = [inputs.subject(place) for place in inputs.members(code)]
    start = np.cumsum([0, *map(len, series)])
    return replace(inputs, start=start, series=np.concatenate(series), **_alone(inputs, code))


def block(graph, own):
    """The graph among the nodes `own` (m,), numbered anew."""
    place = np.full(graph.nodes, -1)
    place[own] = np.arange(len(own))
    inside = (place[graph.row] >= 0) & (place[graph.column] >= 0)
    return Graph(place[graph.row[inside]], place[graph.column[inside]], graph.weight[inside], len(own))


def _alone(inputs, code):
    own = inputs.members(code)
    return {
        "subjects": tuple(inputs.subjects[place] for place in own),
        "institutions": (inputs.institutions[code],),
        "institution": np.zeros(len(own), dtype=np.int64),
        "fold": inputs.fold[own],
        "labels": inputs.labels[:, own],
    }
