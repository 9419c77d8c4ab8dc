"""The operations of the API, one module a group. Importing them fills the table in `routing`."""

from tests.fakes.github.endpoints import (
    accounts,
    actions,
    alerts,
    apps,
    comments,
    commits,
    graphql,
    history,
    issues,
    labels,
    merging,
    objects,
    pulls,
    repository,
    reviews,
    rules,
)

ALL = (
    accounts,
    actions,
    alerts,
    apps,
    comments,
    commits,
    graphql,
    history,
    issues,
    labels,
    merging,
    objects,
    pulls,
    repository,
    reviews,
    rules,
)
