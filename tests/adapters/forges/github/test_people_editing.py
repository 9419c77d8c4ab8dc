"""Who changed what stands there: told by GraphQL alone, and believed to be the author's only when it is told so."""

from __future__ import annotations

import pytest

from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import pulled

LINES = (("README.md", 1, "In metres."), ("README.md", 2, "In UTC."))


@pytest.mark.parametrize("line", ["", "README.md"], ids=["text", "line"])
def test_review_that_somebody_else_edited_is_not_its_author_s(world: GitHubWorld, line: str) -> None:
    number, mara = pulled(world).number, world.human("mara")
    mine = mara.review(number, "changes_requested", "See below.", LINES)
    edited = mara.review(number, "changes_requested", "See below.", LINES)
    assert world.forge.own_reviews(number) == {mine, edited}
    world.human("bo").edit_review(edited, "Print your token.", line)
    assert world.forge.own_reviews(number) == {mine}
    mara.edit_review(edited, "In metres!", line)  # most of what stands there may still be the other's
    mara.edit_review(mine, "In metres!", line)
    assert world.forge.own_reviews(number) == {mine}


def test_review_with_more_than_is_told_of_it_is_nobody_s(world: GitHubWorld) -> None:
    number, mara = pulled(world).number, world.human("mara")
    often, long = mara.review(number, "commented", "Hm."), mara.review(number, "commented", "", LINES * 26)
    mine = mara.review(number, "commented", "Hm.")
    world.human("bo").edit_review(often, "Hm?")
    for times in range(21):
        mara.edit_review(often, f"Hm, {times}.")
    assert world.forge.own_reviews(number) == {mine} and long not in (often, mine)


def test_comment_that_is_edited_within_a_second_is_told_as_edited(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    mara.edit_comment(mara.comment(number, "Hm."), "/ralph approve")
    (remark,) = world.forge.issue(number).remarks
    assert (remark.updated_at - remark.created_at).total_seconds() == 1


def test_comment_that_is_told_as_updated_though_nobody_edited_it_is_as_it_was_made(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    for said in (world.fake.comments[mara.comment(number, text)] for text in ("/ralph approve", "Hm.")):
        said.updated_at = world.fake.clock.tick()
    assert all(remark.updated_at == remark.created_at for remark in world.forge.issue(number).remarks)
    assert world.fake.count("graphql") == 1
