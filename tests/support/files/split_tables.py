"""The two tables that institutions and folds are drawn from."""

import pandas as pd


def split_tables(diagnosis, site="A", duplicates=()):
    """`included` and `participants` of subjects s000, s001, ...; `duplicates` lists positions with one scan.

    A diagnosis of None is unknown; `site` is the site of all or one of each.
    """
    ids = [f"s{number:03d}" for number in range(len(diagnosis))]
    group = list(ids)
    for members in duplicates:
        for member in members:
            group[member] = ids[min(members)]
    included = pd.DataFrame({"subject": ids, "included": True, "twin_group": group, "reason": ""})
    labels = pd.array(list(diagnosis), dtype="Int8")
    return included, pd.DataFrame({"subject": ids, "site": site, "diagnosis": labels})
