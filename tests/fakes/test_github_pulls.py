"""The fake GitHub: pulls, how they follow their branch, files, reviews."""

from __future__ import annotations

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git

# --- opening


def test_commit_of_an_open_pulls_trial_merge_is_no_sign_of_a_merge(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    trial = api("GET", f"./pulls/{number}").json["merge_commit_sha"]
    assert trial and git(fake.bare, "rev-parse", f"refs/pull/{number}/merge") == trial
    assert fake.branch("main") != trial and api("GET", f"./pulls/{number}/merge").status == 404


# --- following the branch


def test_head_follows_pushes_and_direct_moves(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    second = fake.push("topic", {"b": b"b\n"})
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == second
    assert [commit["sha"] for commit in api("GET", f"./pulls/{number}/commits").json][-1] == second
    git(fake.bare, "update-ref", "refs/heads/topic", f"{second}^")
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == git(fake.bare, "rev-parse", f"{second}^")
    assert git(fake.bare, "rev-parse", f"refs/pull/{number}/head") == fake.branch("topic")
    assert api("GET", f"./issues/{number}/events").json[-1]["event"] == "head_ref_force_pushed"


# --- files


# --- reviews
