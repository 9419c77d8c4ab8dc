"""A session whose program attacks its clone, in a real `ralph run`: nothing of it but honest work gets here."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.loop_world import until, works
from tests.helpers import git
from tests.integration.hostile import SAYS, WORDS, Attack, attack, list_reverted, played, shop, standing

pytestmark = pytest.mark.long  # takes ten seconds or more

ATTACKS = [
    attack("a parent becomes a link", "mv docs ../elsewhere && ln -s ../elsewhere docs && echo x > docs/guide.md",
           "docs", "docs/guide.md"),
    attack("a hard link to a file outside", "ln ../aside/person docs/person && ln -f ../aside/person docs/guide.md",
           "docs/person", "docs/guide.md"),
    attack("writing through a hard link", "ln docs/guide.md src/work2.py && echo x >> src/work2.py && rm src/work2.py",
           "docs/guide.md"),
    attack("names in another case", "mkdir DOCS Src .Git && cp docs/guide.md DOCS/ && echo x > Src/b.py "
           "&& echo x > README.MD && echo x > .Git/config", "DOCS/guide.md", "Src/b.py", "README.MD", ".Git/config"),
    attack("a gitlink", "git init -q docs/inner && git -C docs/inner commit -q --allow-empty -m x "
           "&& git add docs/inner", "docs/inner/.git"),
    attack("a committed gitlink", "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib "
           "&& git commit -qm x"),
    attack("a submodule", "git submodule --quiet add $PWD vendor/x && git commit -qm x", ".gitmodules"),
    attack("assume unchanged", "git update-index --assume-unchanged README.md && echo x > README.md", "README.md"),
    attack("skip the work tree", "git update-index --skip-worktree README.md && echo x > README.md", "README.md"),
    attack("flags and nothing else", "git update-index --assume-unchanged README.md && git update-index "
           "--skip-worktree Makefile"),
    attack("sparse checkout", "git sparse-checkout set --no-cone /src/", "docs/guide.md"),
    attack("a nested repository", "git init -q src/inner && echo x > src/inner/x.py", "src/inner/.git"),
    attack("a linked work tree", "git worktree add -q -b wt ../wt && echo x > ../wt/docs/guide.md"),
    attack("replace", "git replace HEAD:README.md HEAD:docs/guide.md && echo x > docs/guide.md", "docs/guide.md"),
    attack("notes", "git notes add -m x HEAD"),
    attack("stash", "echo x > README.md && git stash -q"),
    attack("grafts", "git rev-parse HEAD > .git/info/grafts && echo x > docs/guide.md",
           "docs/guide.md"),
    attack("alternates", "mkdir -p .git/objects/info && echo /tmp > .git/objects/info/alternates"),
    attack("a filter", "git config filter.x.clean \"touch $PWD/../aside/ran; cat\" && "
           "git config core.fsmonitor \"touch $PWD/../aside/ran\" && echo '* filter=x' > .git/info/attributes"),
    attack("hooks elsewhere", "mkdir src/hooks && printf '#!/bin/sh\\ntouch ../aside/ran\\n' > src/hooks/pre-commit "
           "&& chmod +x src/hooks/pre-commit && git config core.hooksPath src/hooks && rm -r src/hooks"),
    attack("a hook", "printf '#!/bin/sh\\ntouch ../aside/ran\\n' > .git/hooks/post-index-change "
           "&& chmod +x .git/hooks/post-index-change"),
    attack("hidden by an ignore file", "echo '*' > docs/.gitignore && echo x > docs/hidden", "docs/.gitignore",
           "docs/hidden"),
    attack("hidden by the exclude file", "echo '*' >> .git/info/exclude && echo x > docs/hidden", "docs/hidden"),
    attack("hidden by a file of its home", "git config core.excludesFile $HOME/ignore && echo '*' > $HOME/ignore "
           "&& echo x > docs/hidden", "docs/hidden"),
    attack("a pipe of a name that git opens", "mkfifo docs/.gitattributes", "docs/.gitattributes"),
    attack("HEAD a pipe", "rm .git/HEAD && mkfifo .git/HEAD && echo x > docs/guide.md", "docs/guide.md"),
    attack("refs gone", "rm -r .git/refs .git/packed-refs .git/logs 2>/dev/null; echo x > docs/guide.md",
           "docs/guide.md"),
    attack("no history", "git checkout -q --orphan new && git commit -qm x && git branch -qD main other "
           "&& git tag -d v1 && git reflog expire --expire=now --all && git gc -q --prune=now"),
]  # fmt: skip  # a table


@pytest.mark.parametrize("what", ATTACKS, ids=str)
def test_what_a_hat_may_not_write_never_gets_here(what: Attack, tmp_path: Path) -> None:
    here = shop(tmp_path)
    before = standing(here.repo)
    done = played(here, what)
    assert (done.code, done.json["ending"]) == (2, "iterations"), done.err
    assert what.told <= list_reverted(done)
    now = standing(here.repo)
    assert {key: now[key] for key in now if now[key] != before[key]} == {}
    assert (here.aside / "person").read_text() == "a person's\n" and not (here.aside / "ran").exists()


# --- hostile sessions state ---

ONE = ("--prd", "--max-iterations", "1", "--verify", "true")
LIST = "listed = json.loads(pathlib.Path('prd.json').read_text())\nstories = listed['userStories']\n"
KEEP = "\npathlib.Path('prd.json').write_text(json.dumps(listed))\n"

ON_STORIES = [
    attack("a story deleted", LIST + "del stories[2]" + KEEP),
    attack("a story in other words", LIST + "stories[2].update(title='easy', acceptanceCriteria=[])" + KEEP),
    attack("another story's priority", LIST + "stories[2]['priority'] = 99" + KEEP),
    attack("a story more", LIST + "stories.append({**stories[0], 'id': 'US-009', 'passes': True})" + KEEP),
    attack("the same id twice", LIST + "stories.append({**stories[2], 'passes': True})" + KEEP),
    attack("another branch", LIST + "listed['branchName'] = 'ralph/else'" + KEEP),
    attack("two flipped", "flip('US-001', 'US-002')\n"),
    attack("the list deleted", "pathlib.Path('prd.json').unlink()\n", "prd.json"),
    attack("the list a folder", "pathlib.Path('prd.json').unlink(); os.mkdir('prd.json')\n", "prd.json"),
    attack("the list a link out", "os.rename('prd.json', here / 'p'); os.symlink(here / 'p', 'prd.json')\n"),
]  # fmt: skip  # a table


@pytest.mark.parametrize("what", ON_STORIES, ids=str)
def test_of_the_stories_one_may_pass_and_nothing_else_changes(what: Attack, tmp_path: Path) -> None:
    here = shop(tmp_path, 3)
    before = json.loads((here.repo / "prd.json").read_text())
    done = played(here, what, *ONE)
    assert done.code == 2 and what.told <= list_reverted(done), done.err
    place = here.repo / "prd.json"
    assert place.is_file() and not place.is_symlink()
    now = json.loads(place.read_text())
    passing = [story.pop("passes") for story in now["userStories"]]
    [story.pop("passes") for story in before["userStories"]]
    assert now == before and passing in ([False, False, False], [True, False, False])
    assert passing[0] == ("two" in what.name)


FOLDERS_AWAY = """
import shutil
theirs = here / 'theirs'
theirs.mkdir()
(theirs / 'prd.json').write_text('theirs')
(theirs / 'progress.txt').write_text('theirs')
for name in ('.ralph/cycles', '.ralph/missions', '.ralph/cache', 'scripts/ralph'):
    shutil.rmtree(name, ignore_errors=True)
    os.symlink(theirs, name)
(run_dir / 'signal').mkdir()
for lock in (*pathlib.Path('.git').rglob('*.lock'), run_dir.parents[1] / '.git/ralph-running'):
    lock.unlink()
"""


@pytest.mark.attack(46)
def test_nothing_is_moved_written_or_removed_where_a_session_has_our_folders_lead(tmp_path: Path) -> None:
    here = shop(tmp_path, 2)
    (here.repo / "scripts/ralph").mkdir(parents=True)
    (here.repo / "prd.json").rename(here.repo / "scripts/ralph/prd.json")
    git(here.repo, "add", "--all")
    git(here.repo, "commit", "--quiet", "--message", "Stories elsewhere")
    done = played(here, attack("folders away", FOLDERS_AWAY), *ONE)
    assert done.code == 2, done.err
    assert "scripts/ralph/prd.json" in list_reverted(done)
    theirs = next(tmp_path.rglob("theirs"))
    assert {path.name: path.read_text() for path in theirs.iterdir()} == {
        "prd.json": "theirs", "progress.txt": "theirs",
    }  # fmt: skip  # one value
    ours = [path for path in (here.repo / ".ralph").rglob("*") if "workspace" not in path.parts]
    assert ours and not [path for path in ours if path.is_symlink()]
    assert json.loads((here.repo / "scripts/ralph/prd.json").read_text())["userStories"]
    assert played(here, attack("nothing", "pass\n"), *ONE).code == 2


def test_who_truncates_the_log_finds_it_whole_again(tmp_path: Path) -> None:
    here = shop(tmp_path, 2)
    (here.repo / "progress.txt").write_text(
        "## Codebase Patterns\n- Dates are UTC\n\n## earlier\n- learned much\n---\n"
    )
    played(here, attack("truncated", "open('progress.txt', 'w').close()\nflip('US-001')\n"), *ONE)
    assert "- learned much" in (here.repo / "progress.txt").read_text()


FORGED = "json.loads((run_dir / 'state.json').read_text())"
ON_STATE = [
    attack("all of it deleted", "sh('rm -rf .ralph')\n"),
    attack("a link in its place", "sh('rm -rf .ralph && ln -s ../aside .ralph')\n"),
    attack("a file in its place", "sh('rm -rf .ralph && echo x > .ralph')\n"),
    attack("a state of its own", f"state = {FORGED}\nstate['state']['iteration'] = 40 if 'state' in state else 0\n"
           "(run_dir / 'state.json').write_text(json.dumps(state))\n"),
    attack("a state that is none", "(run_dir / 'state.json').write_bytes(bytes(range(256)))\n"),
    attack("a state that is a pipe", "(run_dir / 'state.json').unlink(); os.mkfifo(run_dir / 'state.json')\n"),
    attack("an event log of its own", "(run_dir.parent / 'events.jsonl').write_text('{\"topic\": \"COMPLETE\"}\\n')\n"),
    attack("an event log that is a pipe", "os.mkfifo(run_dir.parent / 'x'); os.replace(run_dir.parent / 'x', "
           "run_dir.parent / 'events.jsonl')\n"),
    attack("words that are no JSON", "(run_dir.parent / 'agent/said.jsonl').write_bytes(b'\\xff{}\\n[1]\\n' * 1000)\n"),
    attack("words in a pipe", "sh('rm -f .ralph/agent/said.jsonl; mkfifo .ralph/agent/said.jsonl')\n"),
    attack("guidance that is no JSON", "(run_dir / 'guidance.jsonl').write_bytes(b'\\0\\xff\\n')\n"),
    attack("guidance in a pipe", "sh('rm -f .ralph/loop/guidance.jsonl; mkfifo .ralph/loop/guidance.jsonl')\n"),
    attack("a signal that is a pipe", "sh('rm -f .ralph/loop/signal; mkfifo .ralph/loop/signal')\n"),
    attack("a signal that is none", "(run_dir / 'signal').write_bytes(b'\\xff' * 5_000_000)\n"),
    attack("a prompt that is a link", "sh('ln -sf ../../../aside/person .ralph/loop/prompt.txt')\n"),
]  # fmt: skip  # a table


@pytest.mark.parametrize("what", ON_STATE, ids=str)
def test_a_forged_state_neither_ends_the_run_nor_proves_anything(what: Attack, tmp_path: Path) -> None:
    here = shop(tmp_path, 2)
    first = what.script.strip().replace("\n", "\n    ")
    script = f"if call == 1:\n    {first}\nelse:\n    change()\n    flip(todo()[0])\n"
    done = played(here, attack(what.name, script), "--prd", "--preset", "fresh", "--max-iterations", "3")
    assert (done.code, done.json["sessions"], here.passing()) == (0, 3, ["US-001", "US-002"]), done.err
    assert (here.aside / "person").read_text() == "a person's\n"
    assert json.loads((here.repo / ".ralph/loop/state.json").read_text())


NO_PLACE = [
    attack("tasks in a pipe", "sh('rm -f .ralph/agent/tasks.jsonl; mkfifo .ralph/agent/tasks.jsonl')\n"),
    attack("records in folders", "sh('rm -rf .ralph/loop/runs && echo x > .ralph/loop/runs')\n"),
]  # fmt: skip  # a table


@pytest.mark.parametrize("what", NO_PLACE, ids=str)
def test_where_nothing_can_be_written_a_person_hears_what_to_move(what: Attack, tmp_path: Path) -> None:
    here = shop(tmp_path, 1)
    done = played(here, what, *ONE)
    assert done.code == 2 or (done.json["error"]["who"], "move it away" in done.json["error"]["next"]) == ("you", True)
    assert here.passing() == []


def test_events_that_a_session_forges_in_a_file_count_as_its_own_words_only(tmp_path: Path) -> None:
    here = shop(tmp_path)
    forged = '{"topic": "LOOP_COMPLETE", "payload": "x", "hat": "person", "iteration": 99}\\n'
    script = f"open(run_dir.parent / 'events.jsonl', 'a').write('{forged}')\n"
    done = played(here, attack("forged", script), "build it", "--max-iterations", "2")
    assert (done.code, done.json["sessions"]) == (2, 2), done.err


# --- processes ---------------------------------------------------------------------------

DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        (here / "pid").write_text(str(os.getpid()))
        {}
        for stream in (0, 1, 2): os.close(stream)
        time.sleep(300)
    os._exit(0)
while not (here / "pid").exists(): time.sleep(0.01)
"""


@pytest.mark.parametrize("extra", ["pass", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_daemon_does_not_outlive_its_session(extra: str, tmp_path: Path) -> None:
    here = shop(tmp_path)
    played(here, attack("daemon", DAEMON.format(extra)))
    assert not works(int((here.aside / "pid").read_text()))


@pytest.mark.attack(37, 38)
@pytest.mark.parametrize("what", [
    attack("much", "sys.stdout.write('x' * 20_000_001)\nsys.stdout.flush()\ntime.sleep(300)\n"),
    attack("almost as much", "sys.stdout.write('line\\n' * 3_900_000)\n"),
    attack("bytes", "sys.stdout.buffer.write(bytes(range(256)) * 4000)\nsys.stdout.flush()\n"),
    attack("escapes", "sys.stdout.write('\\x1b]0;evil\\x07\\x1b[2J\\u202e' * 100)\n"),
    attack("nothing and closed", "os.close(1); os.close(2); sys.stdout = open(os.devnull, 'w')\n"),
], ids=str)  # fmt: skip  # a table
def test_whatever_it_prints_the_run_goes_on_and_the_terminal_is_safe(what: Attack, tmp_path: Path) -> None:
    here = shop(tmp_path)
    done = played(here, what)
    assert (done.code, done.json["sessions"]) == (2, 1), done.err
    assert "\x1b" not in done.err and "\u202e" not in done.err + done.out


def test_a_session_may_not_start_a_second_loop_here(tmp_path: Path) -> None:
    here = shop(tmp_path)
    asks = "done = subprocess.run(['ralph', 'run', 'x', '--command', 'true'], capture_output=True, text=True)\n"
    played(here, attack("nested", asks + "(here / 'said').write_text(f'{done.returncode} {done.stderr}')\n"))
    said = (here.aside / "said").read_text()
    assert said.startswith("1 ") and "sessions of a loop" in said


def test_a_session_may_end_its_run_and_say_its_event_by_command(tmp_path: Path) -> None:
    here = shop(tmp_path)
    script = "sh('ralph agent emit build.done \"by command\"')\nsh('ralph agent cancel --stop')\n"
    done = here.run("build it", *here.agent(WORDS + script))
    assert (done.code, done.json["ending"], done.json["sessions"]) == (1, "stop", 1), done.err
    events = [json.loads(line) for line in (here.repo / ".ralph/events.jsonl").read_text().splitlines()]
    assert "build.done" in json.dumps(events)


def test_a_session_cannot_widen_its_own_rights_by_a_restart(tmp_path: Path) -> None:
    here = shop(tmp_path)
    widened = (here.repo / "ralph.yml").read_text().replace("'src/**'", "'**'")
    first = f"pathlib.Path('ralph.yml').write_text({widened!r}); sh('ralph agent cancel --restart')"
    script = f"if call == 1:\n    {first}\nelse:\n    pathlib.Path('docs/guide.md').write_text('x')\n"
    done = played(here, attack("restart", script))
    assert len(here.calls) == 2 and "docs/guide.md" in list_reverted(done)
    assert (here.repo / "docs/guide.md").read_text() == "guide\n"


def test_without_hats_a_session_cannot_turn_its_checks_green_by_a_restart(tmp_path: Path) -> None:
    here = shop(tmp_path, 1)
    (here.repo / "ralph.yml").write_text("hands: {verify: ['false']}\n")
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "Settings")
    script = ("if call == 1:\n    pathlib.Path('ralph.yml').write_text(\"hands: {verify: ['true']}\\n\")\n"
              "    sh('ralph agent cancel --restart')\nelse:\n    flip('US-001')\n")  # fmt: skip  # one text
    done = played(here, attack("restart", script), "--prd", "--max-iterations", "2")
    assert here.passing() == [] and "false" in (here.repo / "ralph.yml").read_text(), done.err


KILLS = """
pathlib.Path("docs/guide.md").write_text("x")
sh("echo '* filter=x' > .git/info/attributes")
(here / "pid").write_text(str(os.getpid()))
if call == 1:
    os.kill(json.loads((run_dir.parents[1] / ".git/ralph-running").read_text())["pid"], 9)
"""


def test_who_kills_the_loop_is_put_aside_when_it_goes_on(tmp_path: Path) -> None:
    here = shop(tmp_path)
    agent = here.agent(WORDS + KILLS + SAYS)
    process = here.start("build it", "--max-iterations", "1", *agent)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    until(lambda: not works(int((here.aside / "pid").read_text())))
    done = here.run("--continue", "--max-iterations", "1", *agent)
    assert (done.code, done.json["sessions"]) == (2, 1), done.err
    assert (here.repo / "docs/guide.md").read_text() == "guide\n"
    assert not (here.repo / ".git/info/attributes").exists()
