"""A denied command is denied in every spelling and wrapping; what only looks like one may run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.gateways.shim import BUILT_IN
from ralph_mission.loop.commands import DANGEROUS, denied, never_denied, programs

PATTERNS = (
    "git push --force",
    "git reset --hard",
    "git commit --amend",
    "rm -rf",
    "sudo",
    "git branch -D",
    "git push origin main",
    "git stash drop",
    "git clean -f -d",
)

DENIED = r"""
git push --force
git push -f
git push origin feature -f
git push -uf origin feature
git push --force-with-lease
git push --force-with-lease=feature:abc origin feature
git push --force-if-includes --force-with-lease
git push --forc
git push --mirror
git push origin +feature
git push origin +HEAD:refs/heads/feature
git push origin main
git push origin HEAD:main
git push origin HEAD:refs/heads/main
git -C /somewhere push -f
git -c user.name=x push -f
git --git-dir=.git --work-tree . push -f
git --git-dir .git push -f
git --no-pager push -f
git -c alias.p='push -f' p
git -c alias.p='!git push -f' p
git -c alias.p=push p -f
git -c ALIAS.p='push --force' p origin
/usr/bin/git push -f
./git push -f
\git push -f
g""it push -f
g'i't "push" -'f'
"git" 'push' "--force"
git pu\
sh -f
$'\x67it' push -f
$'\147it' push -f
$"git" push -f
{git,push,-f}
git push {--force,origin}
/usr/bin/g?t push -f
/usr/bin/gi* push -f
/usr/bin/g[i]t push -f
G=git; $G push -f
F=-f; git push $F
C="git push -f"; $C
CMD='push -f'; git $CMD
${GIT} push -f
$(which git) push -f
`which git` push -f
git $(echo push) -f
X=1 git push -f
env git push -f
env -i X=1 git push -f
env -S "git push -f"
env --split-string="git push -f"
/usr/bin/env git push -f
command git push -f
command -p git push -f
exec git push -f
builtin command git push -f
nohup git push -f
nice -n 5 git push -f
time git push -f
timeout 5 git push -f
timeout --signal=KILL 5s git push -f
stdbuf -oL git push -f
setsid -w git push -f
echo x | xargs git push -f
xargs -I{} git push -f {}
find . -exec rm -rf {} +
find . -name x -exec sh -c 'rm -rf "$1"' _ {} \;
sh -c "git push -f"
sh -c 'cd x && git push -f'
bash -lc "git push -f"
bash -ec 'git push -f'
bash --norc -c 'git push -f'
/bin/sh -c 'git push -f'
sh -c "sh -c 'git push -f'"
bash -c 'bash -c "bash -c \"git push -f\""'
busybox sh -c 'rm -rf x'
busybox rm -rf x
echo 'git push -f' | sh
echo "rm -rf x" | bash -s
bash <<< 'git push -f'
eval git push -f
eval "git push -f"
eval 'git' 'push' '-f'
trap 'git push -f' EXIT
cd x && git push -f
true; git push -f
false || git push -f
true | git push -f
git push -f &
true & git push -f
(git push -f)
( cd x; git push -f )
{ git push -f; }
if true; then git push -f; fi
while true; do git push -f; done
! git push -f
echo $(git push -f)
echo "$(git push -f)"
echo `git push -f`
echo "`git push -f`"
cat <(git push -f)
x=$(git push -f)
git push -f > log 2>&1
git push > log -f
2>/dev/null git push -f
git push -f # soon
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f' git p
env GIT_CONFIG_COUNT=1 git p
git rebase -x 'git push -f' main
git rebase --exec='git push -f' main
git bisect run git push -f
git submodule foreach 'git push -f'
git submodule foreach git push -f
python -c "import os; os.system('git push -f')"
python3.11 -c "import subprocess; subprocess.run(['git', 'push', '--force'])"
perl -e 'system("rm -rf x")'
node -e 'require("child_process").execSync("git push -f")'
awk 'BEGIN { system("rm -rf x") }'
git reset --hard
git reset HEAD~1 --hard
git reset --har
git commit --amend
git commit -a --amend --no-edit
git commit --am
rm -rf x
rm -fr x
rm -r -f x
rm -f x -r
rm x -rf
rm -Rf x
rm -rvf x
rm --recursive --force x
rm --rec --fo x
/bin/rm -rf x
sudo ls
sudo -u root ls
X=1 sudo ls
which sudo && $(which sudo) ls
git branch -D x
git branch -d -f x
git branch --delete --force x
git branch -df x
git stash drop
git stash drop stash@{1}
git clean -fd
git clean -d --force
git clean -dxf
git push -f 'never closed
$(git push -f
"""

ALLOWED = r"""
git push
git push origin feature
git push -u origin feature
git push origin HEAD:feature
git push --follow-tags origin feature
git status
git log --oneline -f
git commit -m "no git push --force here"
git commit -m 'rm -rf is bad; sudo too'
git reset
git reset --soft HEAD~1
git commit -a -m fix
git branch -d x
git stash
git stash pop
git clean -n
rm x
rm -r x
rm -f x
rm -- -rf
rmdir x
echo git push -f
echo "git push -f"
grep -rn "git push --force" docs
grep sudo /etc/group
printf '%s\n' 'rm -rf /'
cat docs/rm -rf.md
# git push -f
ls # git push -f
cat > x.md <<'END'
ls sudo.txt
man sudo
pytest -q -f
sh run.sh
bash -x run.sh
python -c "print('force')"
python -m pytest
find . -name '*.py' -exec grep -l git {} +
xargs grep push
env
env X=1 make
timeout 5 make test
$EDITOR README.md
$PYTHON -m pytest
make -C x
never 'closed
(cd x && ls)
echo $((1 + 2))
for f in *; do echo "$f"; done
git -c alias.p=push p origin feature
git config alias.x status
git rebase main
git bisect run make test
"""


@pytest.mark.parametrize("line", DENIED.strip("\n").replace("\\\nsh", "\\\\sh").split("\n"))
def test_denied(line):
    line = line.replace("pu\\\\sh", "pu\\\nsh")
    assert denied(line, PATTERNS)


@pytest.mark.parametrize("line", ALLOWED.strip("\n").split("\n"))
def test_allowed(line):
    assert denied(line, PATTERNS) == ""


def test_a_line_break_parts_commands():
    assert denied("ls\ngit push -f", PATTERNS)
    assert denied("git \\\n push \\\n -f", PATTERNS)


def test_a_here_document_is_text_unless_a_shell_reads_it():
    assert denied("cat > x.md <<'END'\ngit push -f\nEND\nls", PATTERNS) == ""
    assert denied("bash <<END\ngit push -f\nEND", PATTERNS)
    assert denied("cat > x.md <<END\ntext\nEND\ngit push -f", PATTERNS)


def test_words_are_not_read_as_a_line():
    assert denied(["git", "push", "-f"], PATTERNS)
    assert denied(["git", "commit", "-m", "x; git push -f"], PATTERNS) == ""
    assert denied(["sh", "-c", "git push -f"], PATTERNS)


@pytest.mark.parametrize("value", ["push -f", "push --force-with-lease", "!git push -f", "!f() { git push -f; }; f"])
def test_an_alias_of_the_configuration_is_followed(value):
    assert denied(["git", "p", "origin"], PATTERNS, {"p": value})
    assert denied("git p", PATTERNS) == ""


def test_an_alias_of_an_alias_that_never_ends_is_denied():
    assert denied(["git", "a"], PATTERNS, {"a": "b", "b": "a"})


def test_the_reason_names_the_command_the_pattern_and_why():
    why = denied("cd x && git push -f origin", DANGEROUS)
    assert why == "`git push -f origin` is denied by `git push --force`: others lose what they have"


def test_what_cannot_be_read_is_denied_only_when_it_names_a_denied_program():
    assert denied("git 'x", PATTERNS) == "cannot be read, and names `git`"
    assert denied("ls 'x", PATTERNS) == ""


def test_without_patterns_everything_may_run():
    assert denied("sudo rm -rf / ; git push -f", ()) == ""


@pytest.mark.parametrize("pattern", ["Bash(git push --force:*)", "Bash(git push --force)", "  git   push --force "])
def test_patterns_as_agents_spell_them(pattern):
    assert denied("git push -f", [pattern]) and not denied("git push", [pattern])


def test_programs_are_named_once():
    assert programs(("git push -f", "git reset --hard", "rm -rf", "")) == ("git", "rm")


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /",
        "rm -rf /*",
        "rm -rf //",
        "rm -rf ~",
        "rm -rf $HOME",
        'rm -rf "$PWD"',
        "rm -rf ~/",
        "rm -rf ~/*",
        "rm -r .git",
        "rm -rf ./.git/",
        "rm -rf src/../.git",
        "rm -rf .",
        "rm -rf ./*",
        "rm -rf *",
        "rm -rf ..",
        "rm -R .ralph",
        "git clean -fdx",
        "git config --global user.name x",
        "git config --glob x y",
        "git config core.hooksPath x",
        "mkfs.ext4 /dev/sda",
        "dd if=/dev/zero of=/dev/sda",
        "npm publish",
        "git push origin :main",
        "git push -d origin x",
        "doas ls",
    ],
)
def test_dangerous_by_default(line):
    assert denied(line, DANGEROUS)


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        'rm -rf "$scratch"',
        "rm -rf ./dist/*",
        "rm -rf ~/project/build",
        "rm -f .git/index.lock",
        "git push origin main",
        "git commit -am fix",
        "git config user.name x",
        "dd if=a of=b",
        "npm test",
        "git checkout -b x",
        "git clean -fd",
    ],
)
def test_ordinary_work_by_default(line):
    assert denied(line, DANGEROUS) == ""


@given(st.data())
def test_what_is_never_denied_is_not_denied_whatever_follows(data):
    patterns = data.draw(
        st.sampled_from([PATTERNS, tuple(DANGEROUS), (*PATTERNS, "git re* --hard", "Bash(git log:*)")])
    )
    command = data.draw(st.sampled_from(never_denied(BUILT_IN, patterns)))
    words = st.sampled_from(
        ["push", "-f", "--force", "--", "+x", "--hard", "-c", "--exec", "git push -f", "sudo", "rm -rf /"]
    )
    assert denied(["git", command, *data.draw(st.lists(words, max_size=5))], patterns) == ""


@pytest.mark.parametrize("pattern", ["git", "git *", "git --force", "*", "g*t --x", "git * --force", "Bash(git:*)"])
def test_a_pattern_about_all_of_git_leaves_nothing_unjudged(pattern):
    assert never_denied(BUILT_IN, [pattern]) == ()


def test_commands_that_run_a_line_are_always_judged():
    assert not {"rebase", "bisect", "submodule"} & {*never_denied(BUILT_IN, [])}
    assert {"log", "status"} <= {*never_denied(BUILT_IN, ["git re* --hard"])}
    assert not {"reset", "restore"} & {*never_denied(BUILT_IN, ["git re* --hard"])}


@pytest.mark.attack(57)
def test_many_wrappers_in_a_row_cost_little_and_are_denied_where_they_name_a_program() -> None:
    """Each may run any of the words behind it, so there are more ways through them than anybody could follow."""
    wrapped = ["env"] * 100
    assert denied([*wrapped, "true"], ["git push --force"]) == ""
    assert denied([*wrapped, "git", "push", "--force"], ["git push --force"])


def test_what_is_too_deep_to_be_read_is_denied_where_it_names_a_program() -> None:
    assert denied([*["env"] * 12, "echo", "git"], ["git push --force"])
    assert denied(["env", "echo", "git"], ["git push --force"]) == ""
