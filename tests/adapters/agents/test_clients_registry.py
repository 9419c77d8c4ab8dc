"""What is the same for every client: what it sees, what it finds in its home, what it may obey, how it is called."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.agents.client import write_client_files
from ralph_mission.adapters.agents.clients import CLIENTS, find_client, presence
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import called, play, sample, seen

EVERY = sorted(CLIENTS)
every = pytest.mark.parametrize("name", EVERY)
SAMPLED = [("claude", 3), ("codex", 2), ("gemini", 2), ("copilot", 3), ("opencode", 2)]


@every
def test_it_gets_the_prompt_as_it_is_and_on_its_standard_input(name, tmp_path):
    play(CLIENTS[name], tmp_path)
    told = seen(tmp_path)
    assert "@/etc/passwd" in told["stdin"] and "@/etc/passwd" not in " ".join(told["argv"])


@every
def test_it_sees_its_own_keys_and_nobody_elses(name, tmp_path, monkeypatch):
    every_key = {key for client in CLIENTS.values() for key in client.keys}
    for key in (*every_key, "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, f"value-of-{key}")
    play(CLIENTS[name], tmp_path)
    env = seen(tmp_path)["env"]
    assert {key for key, value in env.items() if value == f"value-of-{key}"} == set(CLIENTS[name].keys)


@every
def test_what_an_earlier_session_left_for_it_is_gone(name, tmp_path):
    client, elsewhere = CLIENTS[name], tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    (tmp_path / "home").mkdir()
    for at, place in enumerate(client.fresh):
        target = tmp_path / "home" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if at % 2:
            target.symlink_to(elsewhere)
        else:
            target.mkdir()
            (target / "planted.json").write_text("{}")
    play(client, tmp_path)
    assert not [file for file in seen(tmp_path)["files"] if "planted" in file]
    assert (elsewhere / "mine").read_text() == "mine" and [*elsewhere.iterdir()] == [elsewhere / "mine"]


def test_a_link_in_its_home_does_not_lead_what_we_write_elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".config").symlink_to(tmp_path / "elsewhere")
    play(CLIENTS["amp"], tmp_path)
    assert [*(tmp_path / "elsewhere").iterdir()] == [] and ".config/amp/settings.json" in seen(tmp_path)["files"]


@pytest.mark.parametrize("name", [name for name in EVERY if CLIENTS[name].obeys])
@pytest.mark.attack(49, 60)
def test_it_does_not_play_where_it_would_obey_the_repository(name, tmp_path):
    client = CLIENTS[name]
    (tmp_path / "tree" / client.obeys[0]).mkdir(parents=True)
    turn = play(client, tmp_path)
    assert turn.failure == "exit" and client.obeys[0] in turn.detail and turn.usage.cost_usd == 0
    assert not (tmp_path / "tree" / "seen.json").exists()
    assert play(client, tmp_path, trusted=True).failure == "" and seen(tmp_path)["stdin"]


@every
def test_a_program_that_is_not_there_is_missing(name, tmp_path):
    client = CLIENTS[name]
    assert presence(find_client(client.name, ("no-such-program",)), tmp_path).version == ""
    turn = play(client, tmp_path, "sys.stdout.flush(); os.execv('/bin/sh', ['sh', '-c', 'exec no-such-program'])")
    assert turn.failure == "missing"


@every
def test_who_played_is_in_the_turn(name, tmp_path):
    assert play(CLIENTS[name], tmp_path).agent == name


@pytest.mark.parametrize(("name", "turns"), SAMPLED)
def test_what_a_real_one_printed_is_read(name, turns):
    said = CLIENTS[name].read(sample(name, "ok"))
    assert (said.text, said.error, said.failure) == ("All done.", "", "")
    assert (said.usage.input_tokens, said.usage.output_tokens) == (turns * 1000, turns * 50)
    assert said.usage.turns == turns and said.usage.sessions == 0


@pytest.mark.parametrize("name", [name for name, _ in SAMPLED])
def test_a_key_that_nobody_knows_is_told_from_any_other_failure(name, tmp_path):
    said = CLIENTS[name].read(sample(name, "401"))
    assert said.error and said.failure in ("auth", "") and said.text in ("", said.error)


@every
@pytest.mark.parametrize("output", ["", "[1, 2]", '{"type": 7, "item": [], "usage": "x"}', '{"', "null", '{"part": 1}'])
def test_an_output_that_makes_no_sense_raises_nothing(name, output, tmp_path):
    said = CLIENTS[name].read(sample_of(output))
    assert said.usage.input_tokens == 0


def sample_of(output: str):
    from ralph_mission.adapters.agents.reading import Gave

    return Gave(output.encode())


@pytest.mark.parametrize("name", ["codex", "copilot"])
def test_a_hat_that_may_write_nothing_is_told_apart(name):
    reader = Hat("reviewer", write_allowed=())
    assert called(CLIENTS[name], reader) != called(CLIENTS[name])


def test_a_version_is_asked_of_the_program_and_a_key_of_the_environment(tmp_path, monkeypatch):
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho codex-cli 1.2.3 $1\n")
    program.chmod(0o755)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    found = presence(find_client("codex", (str(program),)), tmp_path / "home")
    assert (found.version, found.key) == ("codex-cli 1.2.3 --version", "OPENAI_API_KEY")


# --- A home is made anew before each session; links that an earlier one left there lead us nowhere. ---


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_what_a_link_in_the_home_leads_to_is_not_removed(tmp_path, name):
    client = CLIENTS[name]
    home, theirs = tmp_path / "home", tmp_path / "theirs"
    home.mkdir()
    for way in filter(None, (*client.fresh, client.leaves)):
        first, _, rest = way.partition("/")
        (theirs / first / rest).mkdir(parents=True, exist_ok=True)
        (theirs / first / rest / "kept").write_text("a person's own")
        if not (home / first).is_symlink():
            (home / first).symlink_to(theirs / first)
    before = sorted(theirs.rglob("*"))
    write_client_files(home, client, {})
    assert sorted(theirs.rglob("*")) == before
