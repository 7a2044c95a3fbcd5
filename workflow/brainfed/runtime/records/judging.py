"""Whether a result is what the present config, code and data would make of it, by the record that lies beside it."""

from collections.abc import Mapping, Sequence

from brainfed.runtime.records.contents import Contents
from brainfed.runtime.records.made import Made, Roles

NO_RECORD = "no record says what made them"
CHANGED = "they were changed, or exchanged, after they were made"
OTHER_INPUT = "what they were made from has another content now"
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
        inputs: what the job would read today, by role.
        outputs: what it writes; one that does not exist was deleted after it was used.
        contents: of the files as they are.
        deleted: the digests of inputs that do not exist any more, as far as records say.
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
