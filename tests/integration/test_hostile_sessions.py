"""A session whose program attacks its clone, in a real `ralph run`: nothing of it but honest work gets here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.hostile import Attack, attack, played, shop, standing, told

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
    assert what.told <= told(done)
    now = standing(here.repo)
    assert {key: now[key] for key in now if now[key] != before[key]} == {}
    assert (here.aside / "person").read_text() == "a person's\n" and not (here.aside / "ran").exists()
