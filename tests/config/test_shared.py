"""`extends`: what comes of settings that several repositories share, and what may not come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ralph_mission.config import reading
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError

SHA = "0123456789abcdef0123456789abcdef01234567"
HARBOUR = f"extends: harbour/.github//ralph.yml@{SHA}\n"


@dataclass
class Repository:
    """Files of a commit, and those of other repositories by `owner/name//path@commit`."""

    files: dict[str, str]
    elsewhere: dict[str, str] = field(default_factory=dict)
    work_tree: Path | None = None
    common_dir: Path = Path()

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        found = {name: self.files.get(name.removeprefix("HEAD:")) for name in names}
        return {name: text.encode() for name, text in found.items() if text is not None}

    def read_shared(self, _folder: Path, repository: str, commit: str, path: str) -> bytes | None:
        text = self.elsewhere.get(f"{repository}//{path}@{commit}")
        return None if text is None else text.encode()


def read(repository: Repository, otherwise: str = "") -> Config:
    return reading.read(repository, repository.read_shared, otherwise=otherwise)


def shared(own: str, theirs: str) -> Repository:
    return Repository({"ralph.yml": HARBOUR + own}, {f"harbour/.github//ralph.yml@{SHA}": theirs})


def refusal(repository: Repository) -> str:
    with pytest.raises(UserError) as caught:
        read(repository)
    assert caught.value.exit_code == 2
    return f"{caught.value.what}; {caught.value.next_step}"


def test_own_words_come_first_and_the_rest_is_from_the_shared_file() -> None:
    config = read(shared("schedule: {high: 20m}\n", "schedule: {high: 30m, low: 1d}\nowners: [mara]\n"))
    assert (config.schedule.high.seconds, config.schedule.low.days, config.owners) == (1200, 1, ("mara",))
    origins = {".".join(map(str, path)): (value, file) for path, value, file in config.origins}
    assert origins["schedule.high"] == ("20m", "ralph.yml")
    assert origins["schedule.low"] == ("1d", "harbour/.github//ralph.yml@0123456789ab")


def test_a_repository_without_settings_has_those_of_its_fleet_and_one_with_some_has_its_own() -> None:
    fleets, repository = HARBOUR.split()[1], shared("", "owners: [mara]\n")
    assert read(Repository({}, repository.elsewhere), otherwise=fleets).owners == ("mara",)
    assert read(Repository({"ralph.yml": ""}, repository.elsewhere), otherwise=fleets).owners == ()


LOOSER = (
    ("limits: {usd_per_day: 3}", "limits: {usd_per_day: 2}", "limits.usd_per_day allows more", "lower it to 2 or less"),
    ("owners: [mara, eve]", "owners: [mara]", "owners allows more", "take out eve"),
    ("owners: []", "owners: [mara]", "owners allows more", "take the key out"),
    ("hands: {auto: [proven-bug]}", "hands: {auto: []}", "hands.auto allows more", "take out proven-bug"),
    ("merge: {checks: required}", "merge: {checks: all}", "merge.checks allows more", "take the key out"),
    ("work: {max_iterations: 9}", "work: {max_iterations: 8}", "work.max_iterations allows more", "lower it to 8"),
    ("work: {max_runtime: 4h}", "work: {max_runtime: 90m}", "work.max_runtime allows more", "shorten it to 90m"),
    ("hands: {verify_timeout: 1800}", "hands: {verify_timeout: 60}", "hands.verify_timeout allows more", "to 60"),
    ("event_loop: {max_cost_usd: 9}", "event_loop: {max_cost_usd: 1}", "event_loop.max_cost_usd allows", "to 1"),
    ("event_loop: {max_iterations: 9}", "max_iterations: 1", "event_loop.max_iterations allows", "lower it to 1"),
    (
        "event_loop: {max_runtime_seconds: 99}",
        "event_loop: {max_runtime_seconds: 9}",
        "event_loop.max_runtime_seconds",
        "to 9",
    ),
    ("cost: {prices: {m: 0/0}}", "cost: {prices: {m: 3/15}}", "cost.prices.m allows more", "write 3/15 or more"),
    ("cost: {prices: {m: {input: 0, output: 15}}}", "cost: {prices: {m: 3/15}}", "cost.prices.m allows", "write 3/15"),
    (
        "hands: {agent: {sandbox: env}}",
        "hands: {agent: {sandbox: bwrap}}",
        "hands.agent.sandbox allows",
        "take the key",
    ),
    ("hands: {agent: {trust: true}}", "hands: {agent: {trust: false}}", "hands.agent.trust allows", "take the key"),
    ("hands: {agent: {wrap: ''}}", "hands: {agent: {wrap: srt}}", "hands.agent.wrap allows", "take the key out"),
    ("loop: {browser_check: ''}", "loop: {browser_check: x}", "loop.browser_check allows more", "take the key out"),
    ("loop: {thresholds: {x: 9}}", "loop: {thresholds: {x: 1}}", "loop.thresholds.x allows more", "lower it to 1"),
    (
        "hats: {b: {write_allowed: [a, c]}}",
        "hats: {b: {write_allowed: a}}",
        "hats.b.write_allowed allows",
        "take out c",
    ),
    ("completion: {open_tasks: trust}", "completion: {open_tasks: reject}", "completion.open_tasks allows", "take the"),
    ("telegram: {users: [1, 2]}", "telegram: {users: [1]}", "telegram.users allows more", "take out 2"),
)


@pytest.mark.parametrize(("own", "theirs", "what", "next_step"), LOOSER)
def test_a_limit_may_be_stricter_but_never_looser(own: str, theirs: str, what: str, next_step: str) -> None:
    said = refusal(shared(own, theirs))
    assert said.startswith(f"ralph.yml line 2: {what}")
    assert "harbour/.github//ralph.yml@0123456789ab" in said
    assert next_step in said
    read(shared(theirs, own.replace("[]", "[mara]").replace("[mara, eve]", "[mara]")))  # the other way round


def test_ceilings_are_lifted_only_where_the_extended_file_lifts_them() -> None:
    own = "limits: {above_ceilings: true, usd_per_cycle: 900}\n"
    assert "limits.above_ceilings is true, which only" in refusal(shared(own, "limits: {usd_per_day: 1}\n"))
    assert read(shared(own, "limits: {above_ceilings: true}\n")).limits.usd_per_cycle == 900


def test_denials_of_a_hat_add_up_and_cannot_be_emptied() -> None:
    theirs = "hats: {b: {write_denied: ['*.key'], commands_denied: git push, disallowed_tools: [Bash]}}\n"
    hat = read(shared("hats: {b: {write_denied: [], commands_denied: [], disallowed_tools: Web}}\n", theirs)).hats["b"]
    assert (hat.write_denied, hat.commands_denied) == (("*.key",), ("git push",))
    assert hat.disallowed_tools == ("Bash", "Web")


def test_what_only_makes_stricter_adds_up() -> None:
    config = read(
        shared("hands: {verify: [make test]}\n", "hands: {verify: [make lint]}\nthinker: {watch_only: [todo]}\n")
    )
    assert config.hands.verify == ("make lint", "make test")
    assert config.thinker.watch_only == ("todo",)


@pytest.mark.parametrize("section", ["memory: {branch: elsewhere}", "extensions: [{kind: observer, use: a.b:c}]"])
def test_a_shared_file_brings_no_code_into_ralph_and_moves_no_memory(section: str) -> None:
    assert "has no place in a file that others extend" in refusal(shared("", section))


@pytest.mark.parametrize("named", [SHA[:12], "main", "v1", ""])
def test_what_is_not_pinned_by_a_whole_commit_is_refused(named: str) -> None:
    said = refusal(Repository({"ralph.yml": f"extends: harbour/.github//ralph.yml@{named}"}))
    assert said.startswith("ralph.yml line 1: extends is")
    assert "all 40 digits" in said


def test_a_file_that_is_not_there_is_said() -> None:
    assert "which is not there" in refusal(Repository({"ralph.yml": HARBOUR}))
    assert "extends names base.yml, which is not there" in refusal(Repository({"ralph.yml": "extends: base.yml"}))


def test_a_file_of_a_commit_leads_into_that_commit_only(tmp_path: Path) -> None:
    (tmp_path / "base.yml").write_text("owners: [eve]\n")
    outside = Repository({"ralph.yml": f"extends: {tmp_path}/base.yml\n"})
    assert "which is not there" in refusal(outside)
    assert "which is not there" in refusal(Repository({"ralph.yml": "extends: ../base.yml\n"}))
    inside = Repository({"ralph.yml": "extends: ci/a.yml", "ci/a.yml": "extends: b.yml", "ci/b.yml": "owners: [mara]"})
    assert read(inside).owners == ("mara",)


def test_what_a_shared_file_names_beside_it_is_in_its_own_repository() -> None:
    repository = shared("", "extends: base.yml\n")
    repository.elsewhere[f"harbour/.github//base.yml@{SHA}"] = "limits: {active_missions: 1}\n"
    assert read(repository).limits.active_missions == 1
    repository.elsewhere[f"harbour/.github//ralph.yml@{SHA}"] = "extends: ../../ralph.yml\n"
    assert "which is not there" in refusal(repository)


CHAINS: tuple[Callable[[], Repository], ...] = (
    lambda: Repository({"ralph.yml": "extends: ralph.yml"}),
    lambda: Repository({"ralph.yml": "extends: a.yml", "a.yml": "extends: ralph.yml"}),
    lambda: Repository({"ralph.yml": "extends: 1.yml"} | {f"{n}.yml": f"extends: {n + 1}.yml" for n in range(1, 9)}),
)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_ends(chain: Callable[[], Repository]) -> None:
    assert "leads back to itself, or through over 5 files" in refusal(chain())


def test_on_this_machine_a_path_is_one_from_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "base.yml").write_text("owners: [mara]\n")
    (tmp_path / "here" / "ralph.yml").write_text("extends: ../base.yml\n")
    assert read(Repository({}, work_tree=tmp_path / "here")).owners == ("mara",)
