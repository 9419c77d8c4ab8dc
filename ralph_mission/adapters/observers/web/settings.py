"""What a source of the web is told by configuration."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from ralph_mission.adapters.http.guard import AddressRefused, parse_address
from ralph_mission.adapters.observers.settings import Duration, ObserverSection, Slug
from ralph_mission.extras import missing_module
from ralph_mission.mission.model.mission import Severity


def _address(url: str) -> str:
    try:
        parse_address(url)
    except AddressRefused as error:
        raise ValueError(error.what) from None
    return url


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


Address = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_address)]
Pattern = Annotated[str, StringConstraints(max_length=1_000), AfterValidator(_pattern)]


class WebSettings(ObserverSection):
    """One source of the web."""

    name: Slug = Field(description="How reports call it.")
    kind: Literal["feed", "json", "page", "search"] = Field(description="What is there, or a search.")
    url: Address | None = Field(None, description="Where it is; a search goes to SEARCH_URL of the environment.")
    query: Annotated[str, StringConstraints(max_length=500)] = Field("", description="What is searched for.")
    match: Pattern = Field("", description="A regular expression that news have to match, in whatever case.")
    path: Annotated[str, StringConstraints(max_length=1_000)] = Field(
        "", description="In JSON: JMESPath to a list or a value. In a page: a CSS selector of what counts."
    )
    every: Duration = Field(timedelta(hours=1), description="How often to look at most.")
    finding: Slug = Field("news", description="The kind of finding its news are.")
    severity: Severity = Field(Severity.LOW, description="Of its news.")

    @model_validator(mode="after")
    def _whole(self) -> WebSettings:
        if self.kind == "search" and (self.url or not self.query):
            raise ValueError("a search has a query and no url: it goes to SEARCH_URL of the environment")
        if self.kind != "search" and (self.query or not self.url):
            raise ValueError(f"a {self.kind} has a url and no query")
        if self.path:
            _check(self.kind, self.path)
        return self


def _check(kind: str, path: str) -> None:
    if kind == "feed":
        raise ValueError("a feed has no path")
    if kind == "page":
        if missing_module("web"):
            return  # nobody can tell here; the look at the page asks for the extra
        from selectolax.lexbor import LexborHTMLParser, SelectolaxError

        try:
            LexborHTMLParser("<p>").css(path)
        except SelectolaxError:
            raise ValueError("path is no CSS selector") from None
        return
    import jmespath

    try:
        jmespath.compile(path)
    except ValueError as error:
        raise ValueError(f"path is no JMESPath expression ({str(error).splitlines()[0]})") from None
