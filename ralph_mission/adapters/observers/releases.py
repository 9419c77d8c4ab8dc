"""Observes what the default branch holds since the last release, by git alone.

Only for repositories that release regularly: at least four version tags (Semantic Versioning, with or without `v`) on
the default branch. Features and fixes count, by Conventional Commits prefix or by the title of a merged pull request,
if they change more than documentation, tests and automation, or if people noted them as unreleased in the changelog; a
single fix is not enough. They must have waited longer
than the configured time and than twice the usual pause between releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.looking import age_days, block, one_line
from ralph_mission.config.observers import ReleaseSettings
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.patch import EXECUTABLE, REGULAR
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

NAME = "releases"
MIN_RELEASES = 4  # releases
PAUSES = 10  # of which the usual one is the median
PATIENCE = 2.0  # usual pauses
LEAST_FIXES = 2  # without a feature; nobody releases a single fix
ENCODING = 3  # of what is cached
MOST, SHOWN = 1_000, 15  # commits that are read, and that are named
TAG = compile_regex(r"(?P<prefix>(?:.*[^0-9A-Za-z.])?[vV]?)(?P<version>\d+\.\d+(?:\.\d+)?)")
CONVENTIONAL = compile_regex(r"(?P<type>[a-z]+)(?:\([^()]*\))?!?: ")
PULL = compile_regex(r"Merge pull request #\d+ |.* \(#\d+\)$")
NUMBER = compile_regex(r" \(#\d+\)$")
FEATURE = compile_regex(r"(?:add|allow|introduce|implement|support|new)\w*\b", re.IGNORECASE)
FIX = compile_regex(r"(?:.*\b)?(?:fix(?:e[sd])?|bug|crash|regression|security)\b", re.IGNORECASE)
SECURITY = compile_regex(r"\bCVE-\d{4}-\d+|\bGHSA(?:-[a-z0-9]{4}){3}", re.IGNORECASE)
MINOR_CHANGE = compile_regex(
    r"\b(?:typos?|spelling|docs?|documentation|readme|changes|changelog|ci|workflows?|lint\w*|tests?|tox|pre-commit|version)\b",
    re.IGNORECASE,
)
"""Title words of changes that users would not notice."""
BESIDE = compile_regex(
    r"(?:^|/)(?:docs?|documentation|tests?|__tests__|spec|testing|examples?|benchmarks?|\.github|\.circleci|\.devcontainer)/"
    r"|\.(?:md|rst|txt|adoc)$|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.\w+$|(?:^|/)\.[^/]*$|\.lock$|-lock\.(?:json|yaml)$"
    r"|(?:^|/)(?:pyproject\.toml|setup\.cfg|package\.json|Cargo\.toml|go\.(?:mod|sum)|pom\.xml)$",
    re.IGNORECASE,
)
"""Files without features or fixes for those who install the project."""
CHANGELOG = compile_regex(r"(?:CHANGELOG|CHANGES|HISTORY|NEWS)(?:\.(?:md|rst|txt))?", re.IGNORECASE)
UNRELEASED = compile_regex(
    r"^(?:#{1,3} +\[?unreleased\b.*|\[?unreleased\]?.*\n[-=~]{3,})$(?P<notes>(?:\n(?!#{1,2} |.+\n[-=~]{3,}$).*)*)",
    re.IGNORECASE | re.MULTILINE,
)
"""The section of a changelog that no release has yet, in Markdown or reStructuredText."""
NOTE = compile_regex(r"^ {0,3}[-*+] +\S", re.MULTILINE)
ADDED = compile_regex(r"^#{2,4} +Added\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class VersionTag:
    """A release: the tag, its version, and when it was made."""

    name: str
    version: tuple[int, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class UnreleasedCommit:
    """An unreleased commit of the default branch; `kind`: feature, fix, or ""."""

    sha: str
    at: int  # seconds since 1970
    title: str
    kind: str


def build(settings: ReleaseSettings, git: Git, cache: Path | None = None) -> ReleaseObserver:
    """The observer of a repository's releases; `cache`: a folder for results by commit."""
    return ReleaseObserver(settings, git, FileCache(cache / NAME if cache else None))


@dataclass(frozen=True, slots=True)
class ReleaseObserver:
    """Reads tags, and the commits since the last release."""

    settings: ReleaseSettings
    git: Git
    cache: FileCache = FileCache(None)
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """At most one finding: a release is due."""
        commit = context.head.sha
        every = release_tags(self.git.try_text("for-each-ref", TAGS, "refs/tags"))
        tags, since = self._known(commit, every) if commit and len(every) >= MIN_RELEASES else ((), ())
        if len(tags) < MIN_RELEASES:
            return Observation(NAME, "ok", detail=self._why_not(commit, every), cursor=commit)
        found = [one for one in since if one.kind]
        detail = f"{count_noun(len(since), 'commit')} since {one_line(tags[-1].name, 60)}, {len(found)} to release"
        enough = len(found) >= LEAST_FIXES or any(one.kind == "feature" for one in found)
        due = enough and context.now - _at(found[-1]) > patience(tags, self.settings.after)
        signals = (_signal(tags[-1], since, context),) if due else ()
        return Observation(NAME, "ok", signals, detail=detail, cursor=commit)

    def _why_not(self, commit: str, tags: Sequence[VersionTag]) -> str:
        """Why there is nothing to say about releases."""
        if len(tags) >= MIN_RELEASES and commit and tags[-1].name not in held_tags(self.git, commit):
            return f"no look at releases: the newest, {one_line(tags[-1].name, 60)}, was made on another branch"
        return "no regular releases on this branch"

    def _known(
        self, commit: str, tags: Sequence[VersionTag]
    ) -> tuple[Sequence[VersionTag], Sequence[UnreleasedCommit]]:
        """The branch's releases, and the commits since the last one; cached by commit and tags."""
        question = cache_key(str(ENCODING), commit, *(tag.name for tag in tags))
        with suppress(TypeError, KeyError, ValueError):
            known = self.cache.get(question)
            names = frozenset(known["held"])
            return [tag for tag in tags if tag.name in names], [UnreleasedCommit(**one) for one in known["since"]]
        names = held_tags(self.git, commit)
        tags = tuple(tag for tag in tags if tag.name in names) if tags[-1].name in names else ()
        since = _unreleased(self.git, tags, commit) if tags else []
        self.cache.put(question, {"held": [tag.name for tag in tags], "since": [asdict(one) for one in since]})
        self.cache.tidy()
        return tags, since


TAGS = "--format=%(refname:strip=2)%09%(creatordate:unix)"


def held_tags(git: Git, commit: str) -> frozenset[str]:
    """The tags reachable from a commit. If the newest release is not among them, releases are made on other branches,
    and their contents are unknown."""
    return frozenset(
        git.try_text("for-each-ref", "--format=%(refname:strip=2)", f"--merged={commit}", "refs/tags").split()
    )


def release_tags(lines: str) -> tuple[VersionTag, ...]:
    """The releases among tags, lowest version first; none if several packages have their own tags."""
    families = _families(lines)
    return tuple(families[""] if "" in families else next(iter(families.values()), []) if len(families) == 1 else [])


def _families(lines: str) -> dict[str, list[VersionTag]]:
    """Final releases by tag prefix, ignoring `v`."""
    found: dict[str, list[VersionTag]] = {}
    for line in lines.splitlines():
        name, _, date = line.partition("\t")
        if (tag := TAG.fullmatch(name)) and date.isdigit():
            version = tuple(int(part) for part in tag["version"].split(".")[:3])
            family = tag["prefix"].removesuffix("v").removesuffix("V")
            found.setdefault(family, []).append(VersionTag(name, version, datetime.fromtimestamp(int(date), UTC)))
    return {family: sorted(tags, key=lambda tag: (tag.version, tag.at)) for family, tags in found.items()}


def patience(tags: Sequence[VersionTag], least: timedelta) -> timedelta:
    """How long a change may wait before it is reported."""
    times = sorted(tag.at for tag in tags)[-PAUSES - 1 :]
    usual = median((later - earlier).total_seconds() for earlier, later in pairwise(times))
    return max(least, timedelta(seconds=PATIENCE * usual))


def _unreleased(git: Git, tags: Sequence[VersionTag], commit: str) -> list[UnreleasedCommit]:
    """Commits since the last release, without those it holds by the same title (it was made on a branch of its own)."""
    before, last = (f"refs/tags/{tag.name}" for tag in tags[-2:])
    released = {NUMBER.sub("", one.title) for one in _commits(git, before, last)}
    path, kind = _noted(git, commit)
    return [one for one in _commits(git, last, commit, path, kind) if NUMBER.sub("", one.title) not in released]


def _noted(git: Git, commit: str) -> tuple[str, str]:
    """The path of the changelog, and the kind of what it lists as unreleased."""
    for entry in git.listing(commit, recursive=False):
        if entry.mode in (REGULAR, EXECUTABLE) and CHANGELOG.fullmatch(entry.path):
            return entry.path, noted_kind(git.blobs([entry.oid]).get(entry.oid, b"").decode("utf-8", "replace"))
    return "", ""


def noted_kind(changelog: str) -> str:
    """What a changelog lists as unreleased: feature if something was added, else fix; "" for nothing."""
    found = UNRELEASED.search(changelog)
    if not found or not NOTE.search(found["notes"]):
        return ""
    return "feature" if ADDED.search(found["notes"]) else "fix"


def _commits(git: Git, tag: str, commit: str, changelog: str = "", noted: str = "") -> Iterator[UnreleasedCommit]:
    """Those since a tag, newest first; one that changed the `changelog` is at least of the kind `noted`."""
    form = "--format=%x01%H%x1f%ct%x1f%s%x1f%b%x1f"
    flags = ("--first-parent", "-m", f"-{MOST}", "--name-only", "--no-renames", form)
    try:
        text = git.run("log", *flags, f"{tag}..{commit}").decode("utf-8", "replace")
    except GitError:
        return
    for row in text.split("\x01")[1:]:
        parts = row.split("\x1f")
        if len(parts) == 5:
            title = _title(parts[2], parts[3])
            files = parts[4].split("\n")
            kind = kind_of(title, bool(PULL.match(parts[2])), files)
            if not kind and changelog in files and not MINOR_CHANGE.search(title):
                kind = noted
            yield UnreleasedCommit(parts[0], int(parts[1]), one_line(title), kind)


def _title(subject: str, body: str) -> str:
    """The change's title; for a merged pull request, the pull request's."""
    if not subject.startswith("Merge pull request #"):
        return subject
    return next((line for line in body.splitlines() if line.strip()), subject)


def kind_of(title: str, pull: bool, files: Iterable[str]) -> str:
    """feature, fix, or "" if it needs no release."""
    if SECURITY.search(title):
        return "fix"  # also of only a dependency, as users get it by a release
    if all(BESIDE.search(path) for path in files if path):
        return ""
    if found := CONVENTIONAL.match(title):
        return {"feat": "feature", "fix": "fix", "perf": "fix"}.get(found["type"], "")
    if not pull or MINOR_CHANGE.search(title):
        return ""
    return "fix" if FIX.match(title) else "feature" if FEATURE.match(title) else ""


def _at(commit: UnreleasedCommit) -> datetime:
    return datetime.fromtimestamp(commit.at, UTC)


def _signal(tag: VersionTag, since: Sequence[UnreleasedCommit], context: ObservationContext) -> Signal:
    features = [one for one in since if one.kind == "feature"]
    fixes = [one for one in since if one.kind == "fix"]
    oldest = [one for one in since if one.kind][-1]
    counts = " and ".join(
        f"{len(found)} {noun if len(found) == 1 else plural}"
        for found, noun, plural in ((features, "feature", "features"), (fixes, "fix", "fixes"))
        if found
    )
    days = age_days(_at(oldest), context.now)
    lines = [f"- {one.sha[:12]} {one.title}" for one in (*features, *fixes)[:SHOWN]]
    more = len(features) + len(fixes) - len(lines)
    return Signal(
        observer=NAME,
        kind="unreleased",
        title=one_line(f"{counts} since {tag.name} not released, the oldest for {days:.0f} days", 160),
        essence=("unreleased", tag.name),
        severity=Severity.LOW,
        confidence=0.9,
        detail=block(
            "\n".join([f"{count_noun(len(since), 'commit')} since {tag.name} of {tag.at:%Y-%m-%d}:", *lines])
            + (f"\n- and {more} more" if more else "")
        ),
        facts=(("commits", len(since)), ("features", len(features)), ("fixes", len(fixes)), ("days", round(days))),
    )
