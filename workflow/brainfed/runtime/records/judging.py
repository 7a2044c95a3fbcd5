"""Whether a result is current under today's config, code and data, by the record beside it."""

from collections.abc import Mapping, Sequence

from brainfed.runtime.records.contents import Contents
from brainfed.runtime.records.made import Made, Roles

NO_RECORD = "no record lies beside them"
CHANGED = "they were changed, or exchanged, after they were made"
OTHER_INPUT = "the content of their inputs has changed"
OTHER_PARTS = "other settings or other code made them"
OTHER_ROLES = "other inputs made them"
OTHER_VERSIONS = "other versions of the libraries made them"


def verdict(
    made: Made | None,
    parts: Mapping[str, str],
    inputs: Roles,
    outputs: Sequence[str],
    contents: Contents,
    deleted: Mapping[str, str],
    versions: Mapping[str, str],
) -> str:
    """Why the outputs of a job are not current; empty where they are.

    Args:
        made: the record beside them, if there is one.
        parts: digests of the parameters of today.
        inputs: the job's inputs of today, by role.
        outputs: its outputs; one that does not exist was deleted after it was used.
        contents: of the files as they are.
        deleted: the digests of inputs that do not exist any more, as far as records have them.
        versions: those of today where a result of other versions is not current; empty: versions do not count.
    """
    if made is None or set(made.outputs) != set(outputs):
        return NO_RECORD
    if dict(made.parts) != dict(parts):
        return OTHER_PARTS
    if made.inputs != inputs:
        return OTHER_ROLES
    if not all(contents.is_still(path, made.outputs[path]) for path in outputs if contents.exists(path)):
        return CHANGED
    for path in (path for _, paths in inputs for path in paths):
        if path not in made.contents:
            return OTHER_INPUT
        if contents.exists(path):
            if not contents.is_still(path, made.contents[path]):
                return OTHER_INPUT
        elif deleted.get(path, made.contents[path].digest) != made.contents[path].digest:
            return OTHER_INPUT
    if any(versions.get(name, version) != version for name, version in made.versions.items()):
        return OTHER_VERSIONS
    return ""
