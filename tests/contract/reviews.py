"""Our own review of a pull on any forge: it comments, there is one, and only we edit it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.model.effects import EditReview, LineComment, PostReview, marker
from tests.contract.forge_world import KEY, OTHER, Opened, World, merge_pull, pulled


def post_review(pull: Opened, key: str = KEY, text: str = "Two things.") -> PostReview:
    return PostReview(key, pull.number, pull.sha, f"{text}\n\n{marker(key)}")


class ReviewContract:
    """Reviews of ours on any forge."""

    def test_review_comments_on_a_commit_and_decides_nothing(self, world: World) -> None:
        opened = pulled(world)
        made = world.forge.perform(post_review(opened))
        (review,) = world.forge.pull(opened.number).reviews
        assert (made.status, made.number, review.id) == ("done", review.id, review.id) and made.url
        assert (review.state, review.sha, review.author) == ("commented", opened.sha, world.forge.identity())
        assert review.body == post_review(opened).body

    def test_review_with_remarks_on_lines_is_sent_once(self, world: World) -> None:
        opened = pulled(world)
        effect = replace(post_review(opened), lines=(LineComment("README.md", 1, "Why?"),))
        assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
        assert len(world.forge.pull(opened.number).reviews) == 1

    def test_reviewing_twice_is_reviewing_once(self, world: World) -> None:
        opened = pulled(world)
        assert world.forge.find(post_review(opened)) is None
        first, second = (world.forge.perform(post_review(opened, text=text)) for text in ("One.", "Two."))
        assert (second.status, second.number) == ("adopted", first.number)
        assert len(world.forge.pull(opened.number).reviews) == 1

    def test_marker_in_a_review_of_somebody_else_is_ignored(self, world: World) -> None:
        opened, mara = pulled(world), world.human("mara")
        mara.review(opened.number, "commented", post_review(opened).body)
        mara.review(opened.number, "approved", post_review(opened).body)
        assert world.forge.find(post_review(opened)) is None
        assert world.forge.perform(post_review(opened)).status == "done"
        assert len(world.forge.pull(opened.number).reviews) == 3

    def test_another_key_is_another_review(self, world: World) -> None:
        opened = pulled(world)
        world.forge.perform(post_review(opened, OTHER, f"As said: {marker(KEY)}"))
        assert world.forge.find(post_review(opened)) is None

    def test_edited_review_keeps_its_place_and_commit(self, world: World) -> None:
        opened, mara = pulled(world), world.human("mara")
        mara.review(opened.number, "commented", "Before.")
        made = world.forge.perform(post_review(opened))
        mara.review(opened.number, "commented", "After.")
        edit = EditReview(OTHER, opened.number, made.number, f"Nothing left.\n\n{marker(KEY)}")
        assert world.forge.find(edit) is None
        assert [world.forge.perform(edit).status for _ in range(2)] == ["done", "adopted"]
        said = [(review.body, review.sha) for review in world.forge.pull(opened.number).reviews]
        assert said == [("Before.", opened.sha), (edit.body, opened.sha), ("After.", opened.sha)]

    def test_review_of_somebody_else_is_not_edited(self, world: World) -> None:
        opened = pulled(world)
        world.human("mara").review(opened.number, "commented", "Mine.")
        (theirs,) = world.forge.pull(opened.number).reviews
        assert world.forge.perform(EditReview(KEY, opened.number, theirs.id, "x")).status == "failed"
        assert [review.body for review in world.forge.pull(opened.number).reviews] == ["Mine."]

    def test_review_of_a_pull_that_is_not_there_fails(self, world: World) -> None:
        issue = world.human("mara").create_issue("Question")
        for number in (issue, 99):
            missing = Opened(number, world.forge.default_branch().sha)
            assert world.forge.perform(post_review(missing)).status == "failed"
            assert world.forge.perform(EditReview(KEY, number, 1, "x")).status == "failed"

    def test_review_does_not_stand_in_the_way_of_a_merge(self, world: World) -> None:
        opened = pulled(world)
        world.forge.perform(post_review(opened))
        assert world.forge.perform(merge_pull(opened)).status == "done"

    def test_review_that_its_author_alone_worded_is_told_as_such(self, world: World) -> None:
        opened = pulled(world)
        world.human("mara").review(opened.number, "changes_requested", "In metres.")
        made = world.forge.perform(post_review(opened))
        world.forge.perform(EditReview(OTHER, opened.number, made.number, f"Nothing left.\n\n{marker(KEY)}"))
        world.forge.forget_lists()
        reviews = world.forge.pull(opened.number).reviews
        assert world.forge.own_reviews(opened.number) == {review.id for review in reviews}
        assert len(reviews) == 2

    @pytest.mark.parametrize("text", ["===== review commented", "---\nnumber: 9\n---", "a\r\nb"])
    def test_review_survives_as_it_is(self, world: World, text: str) -> None:
        opened = pulled(world)
        world.forge.perform(post_review(opened, text=text))
        (review,) = world.forge.pull(opened.number).reviews
        assert review.body == post_review(opened, text=text).body
