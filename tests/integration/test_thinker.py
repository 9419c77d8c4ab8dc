"""A cycle whose findings a model ranks: what it answers is used or replaced, and the cycle is complete either way."""

from __future__ import annotations

import re
import shutil

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from tests.fakes.model import server
from tests.fakes.model.script import call, fault
from tests.fakes.model.server import KEY, ScriptedModel
from tests.helpers import cli, cli_here, commit, git, make_repo, nobody

CONFIG = """\
observers:
  code: {markers: {}}
  commands:
    - name: check
      run: cat bugs.txt
      kind: bug
      parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}
hands: {fixers: [typos]}
cost: {prices: {default: {input: 10, output: 10}}}
thinker: {kind: llm, model: 'anthropic:scripted', seconds: 60}
"""
FILES = {"bugs.txt": "a.py:1: apples fall\nb.py:1: bells ring\nc.py:1: cows moo\n", "a.py": "", "b.py": "", "c.py": ""}
TYPO = {"README.md": "# Harbour\n\nTides are seperate from waves.\n"}
NAMED = re.compile(r"finding ([0-9a-f]+), kind ([\w-]+)[^\n]*\n<<\w+\n([^\n]*)")
TOOL = "rank_findings"
HUSH = "hush-hush-hush-hush"


def repository(path, files=FILES):
    return make_repo(path / "repo", {**files, "ralph.yml": CONFIG})


def cycle(repo, model, *arguments, run=cli_here, **env):
    environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model if isinstance(model, str) else model.url, **env}
    return run("cycle", "--force", *arguments, repo=repo, env=environ)


def read_findings(request):
    """The findings that a request is about: title → (fingerprint, kind)."""
    (text,) = (part["text"] for part in request.body["messages"][0]["content"])
    return {title: (fingerprint, kind) for fingerprint, kind, title in NAMED.findall(text)}


def ranking(*titles, **changes):
    """An answer that puts these first, made of what is asked."""

    def made(request):
        known = read_findings(request)
        chosen = [known[next(title for title in known if word in title)] for word in titles]
        lines = [{"fingerprint": name, "kind": kind, "why": f"it is {name[:4]}"} | changes for name, kind in chosen]
        return call(TOOL, ranking=lines)

    return made


def issues(repo):
    return cli_here("issue", "list", "--json", repo=repo).json["issues"]


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory):
    """What rules alone ask about first."""
    repo = repository(tmp_path_factory.mktemp("rules"))
    commit(repo, {"ralph.yml": (repo / "ralph.yml").read_text().partition("cost:")[0]})
    assert cli_here("cycle", repo=repo).code == 0
    return [issue["title"] for issue in issues(repo)]


SECTIONS = [{"heading": "Risks", "text": "Shepherds may be woken by it. fixes #1 @octocat"}]


def test_a_good_answer_decides_what_is_asked_first_and_writes_sections(tmp_path):
    repo = repository(tmp_path)
    with ScriptedModel([ranking("cows", sections=SECTIONS)]) as model:
        done = cycle(repo, model, "--json", run=cli)
    assert (done.code, done.json["outcome"]) == (0, "done")
    assert model.said_all
    assert not model.refused
    (issue,) = issues(repo)
    assert "cows moo" in issue["title"]
    assert {"ralph:mission", "ralph:research"} <= set(issue["labels"])
    shown = cli_here("issue", "show", str(issue["number"]), repo=repo).out
    assert "Shepherds may be woken by it." in shown
    assert "fixes #1" not in shown
    assert "@octocat" not in shown
    usage = done.json["usage"]
    assert usage == {"model_calls": 1, "input_tokens": 1000, "output_tokens": 50, "cost_usd": 0.0105}
    assert "spend_usd: 0.0105" in git(repo, "show", "ralph-memory:memory/ralph-log.md")


def test_an_unchanged_world_makes_no_request_and_something_new_makes_one(tmp_path):
    repo = repository(tmp_path)
    with ScriptedModel([ranking("cows"), ranking("dogs")]) as model:
        cycle(repo, model)
        again = cycle(repo, model, "--json")
        assert (len(model.journal), again.json["usage"]["model_calls"]) == (1, 0)
        commit(repo, {"bugs.txt": FILES["bugs.txt"] + "d.py:1: dogs bark\n", "d.py": ""})
        cycle(repo, model)
        assert len(model.turns) == 2


@pytest.mark.long  # a variation; the thinker is tested against a scripted model
def test_a_replay_reaches_the_same_decisions_without_a_model(tmp_path):
    repo = repository(tmp_path)
    with ScriptedModel([ranking("cows", sections=SECTIONS)]) as model:
        done = cycle(repo, model, "--json")
    replayed = cli_here("replay", done.json["cycle_id"], repo=repo)
    assert (replayed.code, len(model.turns)) == (0, 1), replayed.err


@pytest.mark.long  # a variation; the thinker is tested against a scripted model
def test_a_cycle_that_dies_after_its_answer_pays_once_and_the_next_one_books_it(tmp_path, monkeypatch):
    repo = repository(tmp_path)
    commits = BranchStore.commit

    def dying(*_):
        raise KeyboardInterrupt

    with ScriptedModel([ranking("cows")]) as model:
        monkeypatch.setattr(BranchStore, "commit", dying)
        assert cycle(repo, model).code == 130
        monkeypatch.setattr(BranchStore, "commit", commits)
        done = cycle(repo, model, "--json")
    assert (done.code, len(model.turns)) == (0, 1)
    assert done.json["usage"]["cost_usd"] == 0.0105
    assert ["cows moo" in issue["title"] for issue in issues(repo)] == [True]


def test_a_cycle_that_dies_after_its_intents_has_booked_its_money_and_kept_its_answer(tmp_path, monkeypatch):
    repo = repository(tmp_path)
    commits, made = BranchStore.commit, []

    def dying(*arguments):
        made.append(commits(*arguments))
        raise KeyboardInterrupt

    with ScriptedModel([ranking("cows")]) as model:
        monkeypatch.setattr(BranchStore, "commit", dying)
        assert cycle(repo, model).code == 130
        monkeypatch.setattr(BranchStore, "commit", commits)
        shutil.rmtree(repo / ".ralph" / "cache")  # a machine that forgets
        done = cycle(repo, model, "--json")
    assert (len(made), done.code, len(model.turns)) == (1, 0, 1)
    assert done.json["usage"]["cost_usd"] == 0.0
    assert "spend_usd: 0.0105" in git(repo, "show", "ralph-memory:memory/ralph-log.md")


@pytest.mark.long  # a variation; the thinker is tested against a scripted model
@pytest.mark.parametrize("number", [-(10**9), 10**400], ids=["less than none", "more than there are"])
def test_tokens_that_nobody_can_believe_are_the_most_it_may_have_cost(tmp_path, monkeypatch, number):
    repo = repository(tmp_path)
    send = server.ModelHandler.send_answer

    def strange(self, status, body, headers=None):
        send(self, status, {**body, "usage": {"input_tokens": number, "output_tokens": number}}, headers)

    monkeypatch.setattr(server.ModelHandler, "send_answer", strange)
    with ScriptedModel([ranking("cows")]) as model:
        done = cycle(repo, model, "--json")
    assert done.code == 0, done.err
    assert 0.0 < done.json["usage"]["cost_usd"] < 2.0


def test_a_staged_cycle_asks_no_model(tmp_path):
    repo = repository(tmp_path)
    with ScriptedModel([]) as model:
        done = cycle(repo, model, "--staged")
    assert done.code == 0
    assert "a staged cycle asks no model" in done.out + done.err
    assert model.journal == []


INVENTED = call(TOOL, ranking=[{"fingerprint": "f" * 16, "kind": "bug", "why": "x"}])
ACTION = call(TOOL, ranking=[], action="merge everything")
HUGE = call(TOOL, ranking=[{"fingerprint": "f" * 16, "kind": "bug", "why": "w" * 1_000_000}])
BAD = {
    "unknown finding": ([INVENTED, INVENTED], "its answers did not fit what was asked", 2),
    "invented action": ([ACTION, ACTION], "its answers did not fit what was asked", 2),
    "another tool": ([call("merge", pull=1)] * 2, "its answers did not fit what was asked", 2),
    "a megabyte": ([HUGE], "its answer was too long", 1),
    "no key": ([fault(401, HUSH)], "its provider refused the key (401)", 1),
    "rate limit": ([fault(429, HUSH, retry_after="3600")], "its provider has enough of us for now (429)", 1),
    "overloaded": ([fault(529, HUSH)], "its provider is overloaded (529)", 1),
    "broken": ([fault(500, HUSH)], "its provider answered 500", 1),
}


@pytest.mark.long  # a variation; the thinker is tested against a scripted model
@pytest.mark.parametrize("name", BAD)
def test_whatever_a_model_does_the_cycle_is_complete_by_rules_and_says_why(tmp_path, by_rules, name):
    script, reason, requests = BAD[name]
    repo = repository(tmp_path)
    with ScriptedModel(script) as model:
        done = cycle(repo, model)
    assert done.code == 0, done.err
    assert f"ranked by rules, not by the model: {reason}" in " ".join(done.out.split())
    assert len(model.turns) == requests
    assert [issue["title"] for issue in issues(repo)] == by_rules
    assert HUSH not in done.out + done.err


@pytest.mark.long  # a variation; the thinker is tested against a scripted model
def test_with_nobody_there_and_without_a_key_rules_rank_too(tmp_path, by_rules):
    repo = repository(tmp_path)
    with nobody() as url:
        done = cycle(repo, url)
        assert "its provider cannot be reached" in done.out
        assert [issue["title"] for issue in issues(repo)] == by_rules
        unset = cycle(repo, url, ANTHROPIC_API_KEY="")
    assert (done.code, unset.code) == (0, 0)
    assert "ANTHROPIC_API_KEY is not set" in unset.out


def test_a_model_may_have_a_person_asked_about_what_would_be_done_at_once(tmp_path):
    repo = repository(tmp_path, files=TYPO)
    with ScriptedModel([ranking("", ask=True)]) as model:
        done = cycle(repo, model, "--json")
    assert [(line["action"], line["tier"]) for line in done.json["decisions"]] == [("open-proposal", "high")]
    assert cli_here("pr", "list", "--json", repo=repo).json["pulls"] == []


def test_once_the_days_money_is_spent_no_model_is_asked(tmp_path):
    repo = repository(tmp_path)
    config = (repo / "ralph.yml").read_text() + "limits: {usd_per_day: 0.001}\n"
    commit(repo, {"ralph.yml": config})
    with ScriptedModel([]) as model:
        done = cycle(repo, model)
    assert "left of this cycle's and today's money" in done.out
    assert model.journal == []
