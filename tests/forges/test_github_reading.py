"""What is read from GitHub: completely, with few requests, and never believed for longer than it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.forges.github import GitHubForge, reading
from ralph_mission.forges.github.etags import MOST, Kept, slim
from ralph_mission.mission.effects import OpenIssue, marker
from ralph_mission.mission.ledger import NOT_ATTEMPTED, Anchor, key_of
from ralph_mission.mission.model import Actor
from ralph_mission.mission.trouble import Missing, Trouble
from tests.contract.forge_contract import KEY, merge_pull, open_issue, outcome, pulled
from tests.forges.github_world import GitHubWorld, github


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    """Its forge as GitHub Actions' own account."""
    with github(tmp_path) as made:
        yield made


def kept_file(world: GitHubWorld) -> Path:
    return world.clone / ".git" / "ralph" / "github.json"


def cycle(forge: GitHubForge, missions: list[tuple[int, int]]) -> set[Actor]:
    """What a cycle asks when it finds nothing to do: lists, its missions, who spoke there, and the anchor."""
    forge.anchor()
    forge.issues(), forge.pulls("all"), forge.identity(), forge.default_branch()
    people: set[Actor] = set()
    for issue, pull in missions:
        people |= {event.actor for event in forge.issue(issue).events} | {r.author for r in forge.pull(pull).reviews}
    for person in people:
        forge.may_approve(person)
    forge.set_anchor(Anchor("lineage", 1 + forge.requests.total, "c" * 40))
    return people


def three_missions(world: GitHubWorld) -> list[tuple[int, int]]:
    mara, missions = world.human("mara"), []
    for place in range(3):
        number = world.forge.perform(open_issue(key_of(str(place)))).number
        world.fake.push(f"topic-{place}", {f"{place}.txt": b"x\n"})
        pull = mara.open_pull(f"topic-{place}", "main", "Mine")
        world.human("mara").comment(number, "Hm")
        mara.label(number, ("ralph:approved",))
        mara.review(pull, "changes_requested", "Wait.")
        missions.append((number, pull))
    return missions


# --- few requests


def test_idle_cycle_with_three_missions_takes_six_requests_at_most(world: GitHubWorld) -> None:
    missions = three_missions(world)
    cycle(world.connected(), missions)
    for _ in range(2):
        world.fake.clock.advance(900)
        forge = world.connected()
        people = cycle(forge, missions)
        details = forge.requests
    assert {person.login for person in people} >= {"mara"}
    assert details.total <= 6, details
    assert details.mutations == 1 and details.not_modified >= 1


def test_cycle_among_300_issues_and_80_pulls_takes_less_than_40_requests(world: GitHubWorld) -> None:
    missions, jonas = three_missions(world), world.human("jonas")
    world.fake.clock.advance(3600)
    for place in range(300):
        jonas.create_issue(f"Issue {place}")
    tip = world.fake.branch("main")
    for place in range(80):
        world.git.move_ref(f"refs/heads/jonas-{place}", _commit(world, tip, place), "")
        jonas.open_pull(f"jonas-{place}", "main", f"Pull {place}")
    forge = world.connected()
    cycle(forge, missions)
    assert forge.requests.total < 40, forge.requests
    assert len(forge.issues()) == 303 and len(forge.pulls()) == 83
    assert all(len(pull.touches) == 1 for pull in forge.pulls())
    world.fake.clock.advance(900)
    later = world.connected()
    cycle(later, missions)
    assert later.requests.total <= 12, later.requests


def _commit(world: GitHubWorld, tip: str, place: int) -> str:
    tree = world.git.write_tree(tip, {f"{place}.txt": ("100644", b"x\n")})
    return world.git.commit_tree(tree, (tip,), f"{place}\n", world.fake.clock.now)


def test_requests_are_counted_by_kind(world: GitHubWorld) -> None:
    world.human("mara").create_issue("One")
    forge = world.connected()
    forge.issues()
    forge.threads.forget()
    forge.issues()
    assert (forge.requests.total, forge.requests.not_modified, forge.requests.mutations) == (2, 1, 0)


def test_lists_are_read_to_their_last_page(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    mara = world.human("mara")
    numbers = [mara.create_issue(f"Issue {place}") for place in range(7)]
    for place in range(5):
        mara.comment(numbers[0], f"Comment {place}")
    assert [issue.number for issue in world.forge.issues()] == numbers
    assert [remark.body for remark in world.forge.issue(numbers[0]).remarks] == [f"Comment {n}" for n in range(5)]


def test_open_pull_that_slept_for_long_is_listed_still(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    world.fake.push("old", {"old.txt": b"x\n"})
    old = world.human("mara").open_pull("old", "main", "Old")
    world.fake.clock.advance(30 * 86_400)
    for place in range(4):
        world.fake.push(f"new-{place}", {f"{place}.txt": b"x\n"})
        number = world.human("mara").open_pull(f"new-{place}", "main", "New")
        world.human("mara").close_pull(number)
    assert [pull.number for pull in world.forge.pulls()] == [old]
    world.forge.threads.forget()
    world.forge.issues()
    assert [pull.number for pull in world.forge.pulls("all")] == [old, 2, 3, 4, 5]


# --- kept details


def read_twice(world: GitHubWorld, number: int, wait: float = 900) -> None:
    """One cycle that reads the details of an issue, and time until the next."""
    world.fake.clock.advance(wait)
    forge = world.connected()
    forge.issues(), forge.issue(number)
    forge.close()
    world.fake.clock.advance(wait)


def reads(world: GitHubWorld, number: int) -> int:
    return world.fake.count(method="GET", below=f"/issues/{number}/*")


def fresh_issue(world: GitHubWorld, number: int) -> Any:
    forge = world.connected()
    forge.issues()
    return forge.issue(number)


def test_details_of_a_quiet_issue_are_not_asked_for_again(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    world.human("mara").comment(number, "Hm")
    read_twice(world, number)
    before = reads(world, number)
    issue = fresh_issue(world, number)
    assert (reads(world, number), len(issue.remarks), len(issue.events)) == (before, 1, 1)


def test_edited_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    updated = world.fake.issue(number).updated_at
    mara.edit_comment(made, "No, wait.")
    assert world.fake.issue(number).updated_at == updated
    assert fresh_issue(world, number).remarks[0].body == "No, wait."


def test_deleted_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    del world.fake.comments[made]
    assert fresh_issue(world, number).remarks == ()


def test_details_read_within_a_minute_of_a_change_are_not_trusted(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number, wait=20)
    before = reads(world, number)
    fresh_issue(world, number)
    assert reads(world, number) == before + 1


def test_details_are_read_anew_after_six_hours(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    world.fake.clock.advance(6 * 3600)
    before = reads(world, number)
    fresh_issue(world, number)
    assert reads(world, number) == before + 1


def test_new_label_is_noticed(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    read_twice(world, number)
    world.human("mara").label(number, ("ralph:mission",))
    assert [event.label for event in fresh_issue(world, number).events] == ["ralph:mission"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"version": 1}', b'{"version": 1, "values": 7}'])
def test_broken_memory_of_requests_is_an_empty_one(world: GitHubWorld, content: bytes) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    kept_file(world).write_bytes(content)
    assert len(fresh_issue(world, number).events) == 1


def test_memory_with_values_of_another_shape_is_not_believed(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    document = json.loads(kept_file(world).read_text())
    document["values"] = {name: {"odd": True} for name in document["values"]}
    kept_file(world).write_text(json.dumps(document))
    assert len(fresh_issue(world, number).events) == 1


def test_answers_to_another_account_are_not_used(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    forge = world.connected(world.fake.token("mara"))
    forge.issues(), forge.issue(number)
    assert forge.requests.not_modified == 0


def test_memory_of_requests_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "x.json", "scope")
    for place in range(10):
        kept.put(str(place), "x" * (MOST // 4))
    kept.get("2")
    kept.save()
    assert (tmp_path / "x.json").stat().st_size < MOST + 1000
    assert set(Kept(tmp_path / "x.json", "scope").values) == {"2", "8", "9"}
    assert Kept(tmp_path / "x.json", "other").values == {}


def test_json_is_kept_without_its_ballast() -> None:
    person = {"login": "m", "avatar_url": "a"}
    head = {"repo": {"id": 1, "full_name": "o/n", "description": "long"}}
    whole = {"html_url": "h", "url": "u", "node_id": "n", "comments_url": "c", "user": person, "head": head}
    assert slim(whole) == {"html_url": "h", "url": "u", "user": {"login": "m"},
                           "head": {"repo": {"id": 1, "full_name": "o/n"}}}  # fmt: skip


# --- what is not there


def test_deleted_issue_is_missing(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    mara.delete_issue(number)
    with pytest.raises(Missing, match=f"deleted issue or pull #{number}"):
        world.forge.issue(number)


def test_what_an_unreadable_repository_lacks_is_no_proof(world: GitHubWorld) -> None:
    forge = world.connected(world.fake.token("jonas", scopes=()))
    world.fake.world.private = True
    with pytest.raises(Trouble, match="may not see it") as caught:
        forge.issue(7)
    assert not isinstance(caught.value, Missing)


def test_renamed_repository_is_read_where_it_went(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    world.fake.fail("redirect", ("GET", "/issues"))
    assert [issue.number for issue in world.forge.issues()] == [number]


def test_transferred_issue_is_missing(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")

    def elsewhere(request: Any, response: Any) -> None:
        if request.below == f"/issues/{number}":
            response.status, response.content = 301, b"{}"
            response.headers["Location"] = f"{world.fake.api_url}/repositories/4711/issues/{number}"

    world.fake.after(elsewhere)
    with pytest.raises(Missing, match=f"moved away issue or pull #{number}"):
        world.forge.issue(number)


def test_redirect_to_another_host_is_not_followed(world: GitHubWorld) -> None:
    def elsewhere(request: Any, response: Any) -> None:
        if request.below == "/issues":
            response.status, response.headers["Location"] = 301, "http://127.0.0.2:9/repositories/723001/issues"

    world.fake.after(elsewhere)
    with pytest.raises(Trouble):
        world.forge.issues()


def test_head_that_cannot_be_fetched_costs_only_its_own_details(world: GitHubWorld) -> None:
    for name in ("one", "two"):
        world.fake.push(name, {f"{name}.txt": b"x\n"})
        world.human("mara").open_pull(name, "main", name)
    assert world.git.text("update-ref", "-d", "refs/pull/1/head") == ""
    first, second = world.forge.pulls()
    assert (first.touches, len(second.touches)) == ((), 1)
    assert any("refs/pull/1/head" in note for note in world.notes)


# --- people


def test_installation_and_person_know_themselves(world: GitHubWorld) -> None:
    assert world.forge.identity() == Actor(41898282, "github-actions[bot]", is_bot=True)
    person = world.connected(world.fake.token("robin"))
    assert person.identity() == world.human("robin").actor
    assert world.fake.count("graphql") == 1


def test_account_of_a_person_does_all_that_the_bot_does(world: GitHubWorld) -> None:
    world.token = world.fake.token("robin")
    world.forge = world.connected()
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    assert world.forge.pull(opened.number).author == world.human("robin").actor
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert world.forge.perform(merge).status == "done"
    number = world.forge.perform(open_issue("c3" * 8)).number
    assert world.forge.find(open_issue("c3" * 8)) and world.forge.has_our_work()
    assert [issue.number for issue in world.forge.issues()] == [number]


def test_connection_that_rested_is_not_trusted(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.forge.issues()
    wire, closed = world.forge.api._wire, []
    monkeypatch.setattr(wire._line.inner.session, "close", lambda: closed.append(1))
    world.forge.api.get("/labels")
    assert not closed
    wire._used -= 20
    world.forge.api.get("/labels")
    assert closed


def test_token_of_an_app_without_its_usual_prefix_has_a_viewer(world: GitHubWorld) -> None:
    token = world.fake.token()
    world.fake.world.tokens["v1.abc"] = world.fake.world.tokens.pop(token)
    assert world.connected("v1.abc").identity().login == "github-actions[bot]"


@pytest.mark.parametrize(("level", "may"), [("none", False), ("read", False), ("triage", False), ("write", True),
                                            ("maintain", True), ("admin", True)])  # fmt: skip
def test_who_may_write_may_approve(world: GitHubWorld, level: str, may: bool) -> None:
    person = world.fake.person("kim", level)
    assert world.forge.may_approve(person.actor) is may


def test_bot_that_may_write_may_not_approve(world: GitHubWorld) -> None:
    bot = world.fake.bot("renovate[bot]")
    bot.set_permission("write")
    assert not world.forge.may_approve(bot.actor)


def test_account_that_github_itself_calls_a_bot_may_not_approve(world: GitHubWorld) -> None:
    mara = world.human("mara")

    def turned(request: Any, response: Any) -> None:
        if request.below.endswith("/permission"):
            response.content = json.dumps(
                response.payload | {"user": {"id": mara.id, "login": "m", "type": "Bot"}}
            ).encode()

    world.fake.after(turned)
    assert not world.forge.may_approve(mara.actor)


def test_own_account_of_a_person_may_not_approve(world: GitHubWorld) -> None:
    robin = world.fake.person("robin", "admin")
    assert not world.connected(world.fake.token("robin")).may_approve(robin.actor)


def test_login_taken_over_by_somebody_else_gives_no_authority(world: GitHubWorld) -> None:
    mara = world.human("mara")
    before = mara.actor
    mara.rename("mara-quint")
    assert not world.forge.may_approve(before)
    impostor = world.fake.person("mara", "admin")
    assert not world.connected().may_approve(before)
    assert world.connected().may_approve(impostor.actor)
    assert world.connected().may_approve(mara.actor)


@pytest.mark.parametrize("login", ["m\u0430ra", "mara\u200b", "../mara", "mara%2F", "mara?x=1"])
def test_login_that_only_looks_alike_gives_no_authority(world: GitHubWorld, login: str) -> None:
    mara = world.human("mara")
    world.fake.person(login.replace("/", "").replace("?", ""), "none")
    world.fake.world.private = True
    assert not world.forge.may_approve(Actor(mara.id + 1, login))
    world.fake.unknown.clear()  # `../mara` is no path that GitHub knows


# --- merging


def test_approval_dismissed_between_judging_and_merging_is_noticed(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert world.forge.pull(opened.number).reviews[0].state == "approved"
    mara.dismiss(opened.number)
    assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")


def test_head_that_moves_in_the_moment_of_merging_is_not_merged(world: GitHubWorld) -> None:
    opened, before = pulled(world), world.fake.branch("main")

    def pushed(request: Any) -> None:
        if request.method == "PUT":
            world.fake.push("ralph/fix", {"evil.txt": b"x\n"})

    world.fake.before(pushed)
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", "approval-head")
    assert world.fake.branch("main") == before


def test_refused_merge_is_reason_to_read_the_pull_anew(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    world.fake.clock.advance(900)
    forge = world.connected()
    forge.pulls(), forge.pull(opened.number)
    mara.dismiss(opened.number)
    forge.perform(replace(merge_pull(opened), approver=mara.id, base="main"))
    assert forge.api.kept.get(f"details {opened.number}") is None


def test_approver_who_lost_their_rights_is_noticed(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    assert world.forge.may_approve(mara.actor)
    mara.set_permission("read")
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")


def test_branch_that_must_be_up_to_date_is_behind(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.protect("main", strict=True)
    world.fake.push("main", {"other.txt": b"x\n"})
    assert world.forge.perform(merge_pull(opened)).detail.startswith("behind: ")


def test_required_check_that_failed_blocks_by_name(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure", required=True)
    said = "blocked: the required check tests ended with failure"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", said)


def test_required_check_that_takes_its_time_is_no_failure(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", None, required=True)
    said = f"{NOT_ATTEMPTED}the required check tests has not finished"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", said)


def test_required_check_that_the_token_may_not_see_is_not_said_to_be_missing(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure", required=True)
    world.fake.fail("403", ("GET", "/commits/*/check-runs*"), times=9)
    world.fake.fail("403", ("GET", "/commits/*/status*"), times=9)
    detail = world.forge.perform(merge_pull(opened)).detail
    assert "has not passed" in detail and "checks: read" in detail


def test_missing_review_blocks_even_who_could_overrule_it(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.protect("main", required_reviews=1, enforce_admins=False)
    world.fake.person("robin", "admin")
    receipt = world.connected(world.fake.token("robin")).perform(merge_pull(opened))
    assert receipt.status == "failed" and receipt.detail.startswith("blocked: a review or check")


def test_merge_waits_until_github_knows_whether_it_can(world: GitHubWorld) -> None:
    world.fake.mergeable_lag = 4
    opened = pulled(world)
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert world.slept == [1, 2]


def test_merge_that_github_cannot_judge_is_put_off(world: GitHubWorld) -> None:
    world.fake.mergeable_lag = 99
    opened = pulled(world)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.status == "failed" and receipt.detail.startswith("not attempted: ")
    assert world.fake.count(method="PUT") == 0


# --- labels, the standing issue, runs


def test_labels_are_made_with_our_colours_once(world: GitHubWorld) -> None:
    world.human("mara").create_issue("Other", labels=("RALPH:Mission",))
    world.forge.perform(open_issue(labels=("ralph:mission", "ralph:research")))
    world.connected().perform(open_issue("c3" * 8, labels=("ralph:research",)))
    assert world.fake.count(method="POST", below="/labels") == 1
    assert world.fake.labels["ralph:research"].description
    assert world.forge.issues()[0].labels == {"ralph:mission"}
    assert world.forge.issue(1).events[0].label == "ralph:mission"


def test_somebody_without_an_account_is_not_assigned_and_no_error(world: GitHubWorld) -> None:
    from ralph_mission.mission.effects import Label

    number = world.human("mara").create_issue("Question")
    effect = Label(KEY, number, ("bug",), (), ("nobody", "mara"))
    assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
    assert world.forge.issue(number).assignees == ("mara",)


def test_standing_issue_is_no_work_and_tells_people_what_this_is(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 3, "c" * 40))
    assert world.forge.issues() == world.forge.issues("all") == ()
    assert not world.forge.has_our_work()
    body = world.fake.issue(1).body or ""
    assert body.splitlines()[-2:] == [f"<!-- ralph:anchor lineage=lineage serial=3 oid={'c' * 40} -->",
                                      marker(key_of("anchor"))]  # fmt: skip
    assert "/blob/ralph-memory/README.md" in body


def test_standing_issue_that_was_closed_is_used_and_never_reopened(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 1, "c" * 40))
    world.human("mara").close_issue(1)
    kept_file(world).unlink()
    world.connected().set_anchor(Anchor("lineage", 2, "d" * 40))
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)
    assert len(world.fake.threads) == 1 and world.fake.issue(1).state == "closed"


def test_standing_issue_of_somebody_else_is_none(world: GitHubWorld) -> None:
    line = f"<!-- ralph:anchor lineage=x serial=9 oid={'c' * 40} -->"
    world.human("mara").create_issue("Mine", f"{line}\n{marker(key_of('anchor'))}")
    assert world.forge.anchor() is None
    assert [issue.number for issue in world.forge.issues()] == [1]


def test_damaged_standing_issue_is_told(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 1, "c" * 40))
    world.human("mara").edit_issue(1, body=f"Hello\n{marker(key_of('anchor'))}")
    with pytest.raises(Trouble, match="issue #1 are damaged"):
        world.connected().anchor()


@pytest.mark.parametrize(
    ("holder", "over"),
    [
        ("{page}/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/actions/runs/7/attempts/1", True),
        ("{page}/actions/runs/7/attempts/2 (loop, box)", False),
        ("{page}/actions/runs/8/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/9/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/7", False),
        ("{page}-as-it-was-called-before/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/x/actions/runs/7/attempts/1 (loop, box)", False),
        ("https://elsewhere.example/harbour/slackwater/actions/runs/7/attempts/1", False),
        ("box 1234 5678", False),
        ("", False),
    ],
)
def test_run_is_over_when_github_says_so(world: GitHubWorld, holder: str, over: bool) -> None:
    world.fake.workflow_run(7, "completed", "success")
    world.fake.workflow_run(8, "in_progress")
    assert world.forge.run_is_over(holder.format(page=world.forge.api.place.page)) is over


def test_an_attempt_is_over_when_the_run_was_started_again(world: GitHubWorld) -> None:
    world.fake.workflow_run(8, "in_progress", attempt=2)
    page = f"{world.forge.api.place.page}/actions/runs/8/attempts"
    assert world.forge.run_is_over(f"{page}/1 (loop, box)")
    assert not world.forge.run_is_over(f"{page}/2 (loop, box)")


def test_people_are_told_where_to_click(world: GitHubWorld) -> None:
    page = f"{world.fake.url}/harbour/slackwater"
    told = f"approve {page}/pull/7 (Files changed, Review changes, Approve)"
    assert world.forge.how("approve_pull", 7) == told
    assert f"{page}/issues/7" in world.forge.how("approve_issue", 7)


# --- shapes


def a_pull(**changes: Any) -> dict[str, Any]:
    side = {"ref": "topic", "sha": "a" * 40, "label": "kim:topic", "repo": {"id": 2}}
    return {"number": 7, "title": "T", "body": None, "state": "open", "user": None, "html_url": "u",
            "created_at": "2026-05-04T12:00:00Z", "updated_at": "2026-05-04T12:00:00Z", "head": side,
            "base": {"ref": "main", "sha": "b" * 40, "repo": {"id": 1}}} | changes  # fmt: skip


def test_branch_of_a_fork_is_told_with_its_owner() -> None:
    assert reading.pull(reading.read(reading.PullWire, a_pull())).head == "kim:topic"
    deleted = a_pull(head={"ref": "topic", "sha": "a" * 40, "label": None, "repo": None})
    assert reading.pull(reading.read(reading.PullWire, deleted)).head == "unknown:topic"


def test_who_left_is_the_ghost() -> None:
    assert reading.pull(reading.read(reading.PullWire, a_pull())).author == Actor(10137, "ghost")


@pytest.mark.parametrize("changes", [{"number": None}, {"head": None}, {"state": "odd"}, {"created_at": "yesterday"}])
def test_answer_of_another_shape_is_trouble_with_the_forge(changes: dict[str, Any]) -> None:
    with pytest.raises(Trouble) as caught:
        reading.read(reading.PullWire, a_pull(**changes))
    assert caught.value.who == "forge" and "\n" not in caught.value.what


def test_what_happened_within_one_second_keeps_its_order() -> None:
    at = "2026-05-04T12:00:00Z"
    wires = [reading.EventWire.model_validate({"id": n, "event": kind, "created_at": at, "label": {"name": "x"}})
             for n, kind in ((3, "labeled"), (2, "unlabeled"), (1, "labeled"))]  # fmt: skip
    assert [event.added for event in reading.events(wires)] == [True, False, True]


def test_review_that_was_not_handed_in_is_not_told() -> None:
    wires = [reading.ReviewWire(id=1, user=None, state="PENDING")]
    assert reading.reviews(wires) == ()


def test_issue_opened_with_the_marker_of_somebody_else_is_not_ours(world: GitHubWorld) -> None:
    effect = OpenIssue(KEY, "Typo", f"x\n{marker(KEY)}")
    world.human("github-actions").create_issue("Typo", effect.body)
    assert world.forge.find(effect) is None
