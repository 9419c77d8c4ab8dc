"""Readable names for a database's rows and columns: names instead of ids, words instead of identifiers.

A row's name comes from the first field that a watch includes, else from a column whose name suggests names. A row that
belongs to another (a node of a chain) also has its parent's name, or only that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ralph_mission.adapters.database.model import Catalog, Column, Relation, Shape

CALLED = (
    *("prettyname", "displayname", "title", "name", "moniker", "fullname", "label", "username", "symbol", "slug"),
)
"""Columns that hold a row's name, best first; without underscores, in lower case."""
TEXTS = ("text", "enum")
MOST_PARENTS = 2  # parents whose names a row without a name gets


def name_column(shape: Shape) -> str:
    """The column with a row's name, or ""."""
    named = {_squeezed(one.name): one for one in reversed(shape.columns)}
    return next((named[word].name for word in CALLED if word in named and _is_text(named[word])), "")


def name_paths(shape: Shape, catalog: Catalog, by: str = "") -> tuple[str, ...]:
    """Paths to a row's name: its own columns, and its parent's. `by`: the columns of a series, if only its name is
    wanted."""
    if by:
        parent = next((one for one in parents(shape, catalog) if one.pairs[0][0] == by), None)
        found = f"{parent.name}.{name_column(catalog.shape(parent.target))}" if parent else ""
        return (found,) if found and not found.endswith(".") else ()
    own = name_column(shape)
    required = [one for one in parents(shape, catalog) if not _optional(shape, one)]
    above = [f"{one.name}.{name}" for one in required if (name := name_column(catalog.shape(one.target)))]
    return (own, *above[:1]) if own else tuple(above[:MOST_PARENTS])


def is_name(path: str) -> bool:
    """Whether a field's name suggests names."""
    return _squeezed(path.rpartition(".")[2]) in CALLED


def parents(shape: Shape, catalog: Catalog) -> Iterator[Relation]:
    """Relations to a row's one parent."""
    for one in shape.relations:
        if not one.many and one.through is None and len(one.pairs) == 1 and shape.column(one.pairs[0][0]):
            ((ours, theirs),) = one.pairs
            # In a one-to-one relation found by our key, the other row is the child.
            if ours not in shape.key or theirs in catalog.shape(one.target).key:
                yield one


def join_names(names: Iterable[str]) -> str:
    """A row's own name, and its parent's in brackets."""
    first, *rest = [*dict.fromkeys(filter(None, names))] or [""]
    return f"{first} ({', '.join(rest)})" if rest else first


def words_of(identifier: str) -> str:
    """`inCommittee`, `in_committee` and `IN_COMMITTEE` as "in committee"."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier)
    return " ".join(apart.replace("_", " ").lower().split())


def plural(identifier: str) -> str:
    """The plural of a model's or table's name."""
    words = words_of(identifier)
    if words.endswith("s"):
        return words
    return words[:-1] + "ies" if re.search(r"[^aeiou]y$", words) else words + "s"


def quality(column: Column) -> str:
    """A boolean column as an adjective: `isJailed` and `jailed` as "jailed"."""
    return re.sub(r"^(is|was) ", "", words_of(column.name))


def state_words(column: Column, value: str) -> str:
    """A state's value in words, without the common prefix of all its values."""
    known = [name for name, _ in column.values]
    start = ""
    if len(known) > 1:
        words = [name.split("_") for name in known]
        shared = 0
        while all(len(one) > shared + 1 and one[shared] == words[0][shared] for one in words):
            shared += 1
        start = "_".join(words[0][:shared]) + "_" if shared else ""
    return words_of(value.removeprefix(start))


def _is_text(column: Column) -> bool:
    return column.type in TEXTS and not column.many


def _optional(shape: Shape, relation: Relation) -> bool:
    column = shape.column(relation.pairs[0][0])
    return column is None or column.nullable


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()
