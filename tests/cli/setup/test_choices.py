"""What `ralph init` proposes for a repository, what a preset takes of it, and what a person at a terminal says."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.adapters.projects.detection import DetectedProject, ProjectCheck
from ralph_mission.cli.setup.choices import Choices, Surroundings, ask, preset_choices, sections, survey
from ralph_mission.config.reading import load, read
from tests.cli.init_place import PINNED, hosted, states, workflow
from tests.helpers import cli_here, commit, make_repo

SCHEMA = """
datasource db { provider = "postgresql" url = env("DATABASE_URL") }
model Chain {
  id         Int    @id @default(autoincrement())
  prettyName String @map("pretty_name")
  nodes      Node[]
  prices     Price[]
  figures    Figures?
  motions    Motion[]
  @@map("chains")
}
model Node {
  id      Int     @id
  chainId Int     @map("chain_id")
  moniker String
  jailed  Boolean @default(false)
  tokens  String
  rate    String
  chain   Chain   @relation(fields: [chainId], references: [id])
  @@map("nodes")
}
model Price {
  id        Int      @id
  chainId   Int      @map("chain_id")
  value     Float
  createdAt DateTime @default(now()) @map("created_at")
  chain     Chain    @relation(fields: [chainId], references: [id])
  @@map("prices")
}
model Figures {
  chainId Int    @id @map("chain_id")
  tvl     Float
  apr     Float
  chain   Chain  @relation(fields: [chainId], references: [id])
  @@map("figures")
}
enum MotionStatus {
  MOTION_STATUS_VOTING
  MOTION_STATUS_PASSED
}
model Motion {
  id      Int    @id
  chainId Int    @map("chain_id")
  title   String
  status  MotionStatus
  chain   Chain  @relation(fields: [chainId], references: [id])
  @@map("motions")
}
"""
FILES = {
    "prisma/schema.prisma": SCHEMA,
    "package.json": '{"scripts": {"test": "node --test"}, "dependencies": {"next": "14", "prisma": "6"}}',
    "yarn.lock": "# yarn lockfile v1\n",
    "README.md": "# Harbour\nSee https://www.harbour.example/ and https://x.com/intent/post and https://x.com/harbour_eye\n",
}
WATCHED = ["jailed", "apr", "price", "price-feed", "tvl", "rate", "tokens", "motion-status", "top-apr", "new-chains"]


def _survey(files: dict[str, str]) -> Surroundings:
    return survey(files, files.__getitem__, "harbour")


def test_a_prisma_schema_and_a_readme_say_what_can_be_watched() -> None:
    found = _survey(FILES)
    assert (found.schema, found.site, found.account) == ("prisma/schema.prisma", "harbour.example", "harbour_eye")
    assert sorted(one.name for one in found.watches) == sorted(WATCHED)
    told = {one.name: dict(one.settings) for one in found.watches}
    assert told["jailed"] == {"name": "jailed", "model": "Node", "where": {"jailed": True}}
    feed = {"name": "price-feed", "model": "Price", "by": "chainId", "at": "createdAt", "missing": "24h"}
    assert told["price-feed"] == feed
    assert told["motion-status"]["where"] == {"status": "MOTION_STATUS_VOTING"}


def test_a_schema_in_several_files_is_named_by_its_folder_and_a_broken_one_proposes_nothing() -> None:
    assert _survey({**FILES, "prisma/more.prisma": "model A {\n  id Int @id\n}\n"}).schema == "prisma"
    assert _survey({**FILES, "prisma/schema.prisma": "model A {\n  id What\n}\n"}) == Surroundings(
        site="harbour.example", account="harbour_eye"
    )
    assert _survey({"README.md": "https://example.org"}) == Surroundings()


def test_the_explorer_preset_writes_a_whole_world_that_loads(tmp_path: Path) -> None:
    repo = hosted(tmp_path / "harbour")
    commit(repo, FILES)
    told = cli_here("init", "--preset", "explorer", "--action", PINNED, "--json", repo=repo)
    assert told.code == 0, told.err
    modes = ("loop", "work", "review", "publish")
    assert set(states(told)) == {"ralph.yml", *(f"ralph-{mode}.yml" for mode in modes)}
    config = read(Git.open(repo), read_shared)
    database = config.observers.database
    assert database and [one.name for one in database.watches] == [one.name for one in _survey(FILES).watches]
    assert config.hands.agent and config.hands.agent.kind == "claude"
    assert config.publishers.templates["tvl"].endswith("this week. Full metrics at harbour.example")
    assert config.observers.social and config.observers.social.account == "harbour_eye"
    job = workflow(repo)["jobs"]["cycle"]
    assert [step["uses"].partition("@")[0] for step in job["steps"]] == ["actions/setup-node", "mara/ralph_mission"]
    assert {"SEARCH_URL", "RALPH_WEB_ALLOW"} <= set(job["env"])
    assert job["steps"][0]["with"] == {"node-version": "lts/*"}
    commit(repo, {".nvmrc": "v20.11\n"})
    assert cli_here("init", "--preset", "explorer", "--action", PINNED, "--force", repo=repo).code == 0
    assert workflow(repo)["jobs"]["cycle"]["steps"][0]["with"] == {"node-version": "20.11"}


def test_without_a_preset_or_a_terminal_watches_stand_there_as_a_comment(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    assert cli_here("init", repo=repo).code == 0
    assert read(Git.open(repo), read_shared).observers.database is None
    text = (repo / "ralph.yml").read_text()
    block = text[text.index("# database:") : text.index("  # Feeds")]
    uncommented = yaml.safe_load("\n".join(line.strip().removeprefix("# ") for line in block.splitlines()))
    assert uncommented["database"]["watches"][0] == {"name": "jailed", "model": "Node", "where": {"jailed": True}}


MODEL = "anthropic:claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("\n\n\n\n\n", ("", "", (), True, ("make test", "make lint"))),
        (
            "-\nn\nclaude\nanthropic:claude-sonnet-4-5\ntelegram, discord\n",
            ("claude", "anthropic:claude-sonnet-4-5", ("telegram", "discord"), False, ()),
        ),
        (
            "scripts/check; scripts/test\ny\nnobody\ncodex\nwrong model\n\nmyspace\ntwitter\n",
            ("codex", "", ("twitter",), True, ("scripts/check", "scripts/test")),
        ),
    ],
)
def test_a_person_at_a_terminal_is_shown_what_was_found_and_asked(said: str, expected: tuple) -> None:
    found, answers = _survey(FILES), []
    checks = (
        ProjectCheck("test", "", "make test"),
        ProjectCheck("lint", "", "make lint"),
        ProjectCheck("build", "", "make"),
    )

    @click.command()
    def command() -> None:
        answers.append(ask(found, DetectedProject((), checks), Choices()))

    shown = CliRunner().invoke(command, input=said)
    assert shown.exit_code == 0, shown.output
    (chosen,) = answers
    assert (chosen.agent, chosen.model, chosen.networks, bool(chosen.watches), chosen.checks) == expected
    assert "jailed: nodes that become jailed, or cease to be" in shown.output


def test_what_was_chosen_is_what_the_file_says() -> None:
    found = _survey(FILES)
    chosen = Choices("", found.watches[:1], "codex", "anthropic:claude-sonnet-4-5", ("telegram",))
    words = sections(chosen, found)
    assert load(f"{words['THINKER']}\n{words['PUBLISHERS']}\n").thinker.model == "anthropic:claude-sonnet-4-5"
    assert words["AGENT"] == "agent: {kind: codex}"
    assert sections(preset_choices("", found), found)["PUBLISHERS"].startswith("# ")
