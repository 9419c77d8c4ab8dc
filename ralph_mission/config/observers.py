"""The settings of each observer, and the front matter of standing briefs (missions/*.md) and texts (content/*.md)."""

import re
import warnings
from datetime import date, timedelta
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from ralph_mission.config.fields import OLD_LIMIT, Duration, PathPattern, SettingsSection, Slug, at_least, at_most
from ralph_mission.extras import missing_module
from ralph_mission.mission.model.mission import Severity
from ralph_mission.safety.address import AddressRefused, parse_address

MARKERS = {"todo": "TODO|FIXME|HACK", "ts-ignore": "@ts-ignore", "any": r": any\b"}
GROUPS = frozenset({"path", "line", "code", "message", "level"})
DAY = timedelta(days=1)


def _check_expression(pattern: str) -> str:
    # Git reads POSIX extended expressions; one that Python cannot read either is an error worth reporting at once.
    # A class like [[:space:]] causes a warning.
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error.msg}") from None
    return pattern


MarkerExpression = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00\n]+$"),
    AfterValidator(_check_expression),
]


class CodeSettings(SettingsSection):
    """What counts as a marker, and where not to look."""

    markers: dict[Slug, MarkerExpression] = Field(
        MARKERS, max_length=20, description="Markers by kind: POSIX extended regular expressions, run by git grep."
    )
    exclude: tuple[PathPattern, ...] = Field((), description="Paths to leave out.")


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


def _check_groups(text: str) -> str:
    if unknown := set(re.compile(_check_pattern(text)).groupindex) - GROUPS:
        raise ValueError(f"named groups among {', '.join(sorted(GROUPS))}, not {', '.join(sorted(unknown))}")
    return text


LineExpression = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_check_groups)]


def _check_jmespath(text: str) -> str:
    import jmespath  # takes a while to load

    try:
        jmespath.compile(text)
    except ValueError as error:
        raise ValueError(f"a JMESPath expression ({str(error).splitlines()[0]})") from None
    return text


Expression = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_check_jmespath)]


class ItemFields(SettingsSection):
    """Where the results are in the document, and where what is in a result."""

    items: Expression = Field("[]", description="The list of results.")
    nested: Expression | None = Field(None, description="A list inside each item that holds the results instead.")
    path: Expression = Field("path", description="The file.")
    line: Expression = Field("line", description="The line, from 1.")
    message: Expression = Field("message", description="What is wrong.")
    code: Expression = Field("code", description="The rule's name.")
    level: Expression = Field("level", description="error, warning or note.")


ExitCode = Annotated[int, Field(ge=0, le=255)]


class Regex(SettingsSection):
    """One result per line that matches."""

    regex: LineExpression = Field(description="Named groups: message, path, line, code, level; each optional.")


class JsonResults(SettingsSection):
    """Results somewhere in a JSON document."""

    model_config = ConfigDict(populate_by_name=True)
    at: ItemFields = Field(alias="json", description="JMESPath expressions.")


class CommandSettings(SettingsSection):
    """One command."""

    name: Slug = Field(description="Its name in reports.")
    run: Annotated[str, StringConstraints(min_length=1, max_length=4_000)] = Field(
        description="Run by /bin/sh in a fresh clone, without credentials."
    )
    parse: Literal["sarif"] | Regex | JsonResults = Field(description="How to read its standard output.")
    kind: Slug = Field("code-quality", description="The kind of finding a result is.")
    timeout: float = Field(120, gt=0, le=3_600, description="Seconds.")
    output_cap: Annotated[int, Field(ge=1_000), at_most(4_000_000), OLD_LIMIT] = 4_000_000
    """Bytes; enough for a SARIF log of thousands of results."""
    ok_codes: tuple[ExitCode, ...] = Field((0, 1), description="Exit codes that are not failures.")
    severity: Annotated[Severity | None, OLD_LIMIT] = None
    """Upper bound for every result, whatever the tool reports."""
    exclude: tuple[PathPattern, ...] = Field((), description="Paths to leave out.")
    cache: bool = Field(True, description="Reuse results for the same commit; false for what asks a network.")
    setup: bool = Field(False, description="Whether it needs hands.setup.")


class CiSettings(SettingsSection):
    """The forge's automation on the default branch."""

    exclude: tuple[PathPattern, ...] = Field((), description="Files of workflows to leave out.")


class BriefSettings(SettingsSection):
    """Standing briefs and texts: nothing is set here, for the files say all of it."""


class ReleaseSettings(SettingsSection):
    """What the default branch holds since the last release."""

    after: Annotated[Duration, at_least(timedelta(days=1))] = Field(
        timedelta(days=30), description="How long a feature or fix may wait."
    )


class ExploreSettings(SettingsSection):
    """Bugs that an agent finds by reading, and proves. `{}` turns it on."""

    exclude: tuple[PathPattern, ...] = Field((), description="Files to leave out.")


class DocsSettings(SettingsSection):
    """Pages that are no longer true."""

    exclude: tuple[PathPattern, ...] = Field((), description="Pages to leave out.")


class ScannerSettings(SettingsSection):
    """Well-known scanners, each where it fits and is installed."""

    exclude: tuple[PathPattern, ...] = Field((), description="Paths to leave out.")


PackageName = Annotated[str, StringConstraints(pattern=r"^[@A-Za-z0-9][A-Za-z0-9._/@-]{0,213}$")]


class DependencySettings(SettingsSection):
    """Vulnerable packages, and outdated ones."""

    exclude: tuple[PathPattern, ...] = Field((), description="Lock files and manifests to leave out.")
    ignore: tuple[PackageName, ...] = Field((), description="Packages whose updates, but not advisories, are left out.")
    updates: bool = Field(
        True, description="Whether registries are asked for newer releases, where `dependencies` is written."
    )
    advisories: Annotated[bool, OLD_LIMIT] = True
    """Whether OSV is asked about known vulnerabilities."""
    every: Annotated[Duration, at_least(timedelta(hours=6)), OLD_LIMIT] = timedelta(hours=6)
    """How long an answer of a registry or of OSV is believed."""
    most: Annotated[int, Field(ge=1), at_most(300), OLD_LIMIT] = 300
    """Packages asked about in one look."""
    seconds: Annotated[float, Field(gt=0), at_most(60), OLD_LIMIT] = 60
    """For all questions of one look."""


class ForgeSettings(SettingsSection):
    """How long is too long."""

    stale_after: Duration = Field(timedelta(days=14), description="An open issue without an assignee or activity.")
    review_after: Annotated[Duration, at_least(timedelta(days=3)), OLD_LIMIT] = timedelta(days=3)
    """A pull request without a review."""
    answer_after: Annotated[Duration, at_least(timedelta(days=2)), OLD_LIMIT] = timedelta(days=2)
    """A question without an answer."""


def _check_address(url: str) -> str:
    try:
        parse_address(url)
    except AddressRefused as error:
        raise ValueError(error.what) from None
    return url


Address = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_check_address)]
TitlePattern = Annotated[str, StringConstraints(max_length=1_000), AfterValidator(_check_pattern)]


class WebSettings(SettingsSection):
    """One source of the web."""

    name: Slug = Field(description="Its name in reports.")
    kind: Literal["feed", "json", "page", "search"] = Field(description="What it is.")
    url: Address | None = Field(None, description="Its address; searches use SEARCH_URL.")
    query: Annotated[str, StringConstraints(max_length=500)] = Field("", description="What is searched for.")
    match: TitlePattern = Field("", description="A regular expression that news must match, in any case.")
    path: Annotated[str, StringConstraints(max_length=1_000)] = Field(
        "", description="In JSON: JMESPath to a list or value. In a page: a CSS selector."
    )
    every: Duration = Field(timedelta(hours=1), description="Shortest interval between looks.")
    finding: Slug = Field("news", description="The kind of finding that its news become.")
    severity: ClassVar[Severity] = Severity.LOW
    """Of its news."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "search" and (self.url or not self.query):
            raise ValueError("a search has a query and no url: it goes to SEARCH_URL of the environment")
        if self.kind != "search" and (self.query or not self.url):
            raise ValueError(f"a {self.kind} has a url and no query")
        if self.path:
            _check_path(self.kind, self.path)
        return self


def _check_path(kind: str, path: str) -> None:
    if kind == "feed":
        raise ValueError("a feed has no path")
    if kind == "page":
        if missing_module("web"):
            return  # unknown here; reading the page requires the extra
        from selectolax.lexbor import LexborHTMLParser, SelectolaxError

        try:
            LexborHTMLParser("<p>").css(path)
        except SelectolaxError:
            raise ValueError("path is not a CSS selector") from None
        return
    import jmespath

    try:
        jmespath.compile(path)
    except ValueError as error:
        raise ValueError(f"path is not a JMESPath expression ({str(error).splitlines()[0]})") from None


Place = Annotated[int, Field(strict=True, ge=1)]


class SocialSettings(SettingsSection):
    """Social networks, asked about our own posts, questions and topics."""

    every: Duration = Field(timedelta(hours=24), description="Shortest interval between looks.")
    account: Annotated[str, StringConstraints(pattern=r"^@?[A-Za-z0-9_]{1,15}$")] | None = Field(
        None, description="Your account on X, for questions to it and its followers."
    )
    trends: Place | None = Field(
        None,
        description="A place (WOEID; 1: everywhere) whose topics on X are reported.",
    )
    channel: Annotated[str, StringConstraints(pattern=r"^[0-9]{5,25}$")] | None = Field(
        None, description="A Discord channel's id, for its questions; needs DISCORD_BOT_TOKEN."
    )


def _whole_days(every: timedelta) -> timedelta:
    if every % DAY:
        raise ValueError("write whole days, such as 7d")
    return every


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\n]+$")]
Period = Annotated[Duration, AfterValidator(_whole_days)]
Networks = Annotated[tuple[Slug, ...], Field(max_length=10)]


class BriefHeader(SettingsSection):
    """Of a standing brief: work that people want done, once or again and again."""

    title: Line = Field(description="What is to be done, in one line.")
    every: Period | None = Field(None, description="How often, in whole days; without it once.")
    after: date | None = Field(None, description="Not before this day (UTC); periods are counted from it.")
    kind: Literal["brief", "architecture", "integration", "feature"] = Field(
        "brief", description="The kind of finding it is; a person is asked about each."
    )
    sources: tuple[Annotated[str, StringConstraints(max_length=500), AfterValidator(_check_address)], ...] = Field(
        (), max_length=20, description="Addresses to begin with."
    )
    networks: Networks = Field((), description="Where a text that comes of it is to be published.")
    done_when: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = Field(
        "", description="How to tell that it is done."
    )


class TextHeader(SettingsSection):
    """Of a text that is to be published, once a person approved it."""

    title: Line = Field(description="What it is, in one line; it is not published.")
    networks: Networks = Field(min_length=1, description="Where it is to be published.")
    every: Period | None = Field(None, description="How often, in whole days; without it once.")
    after: date | None = Field(None, description="Not before this day (UTC); periods are counted from it.")
