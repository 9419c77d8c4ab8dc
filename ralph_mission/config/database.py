"""The settings of the database observer: the schema's path, and its watches."""

import difflib
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ralph_mission.config.fields import OLD_LIMIT, Duration, SettingsSection, Slug, at_least
from ralph_mission.mission.model.mission import Severity

LARGEST = Decimal("1e100")
_WORD = r"[^.\t\r\n'\"`;]"  # of a name; the catalog decides whether it exists
NUMBER = {"type": ["number", "string"]}


def _decimal(value: object) -> Decimal:
    """A decimal as written: 0.1 is a tenth, not the nearest float."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("write a number")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError("write a number") from None
    if not number.is_finite() or abs(number) > LARGEST or int(number.as_tuple().exponent) < -100:
        raise ValueError("write a number of ordinary size")
    return number


def _percentage(value: object) -> Decimal:
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*", value) if isinstance(value, str) else None
    number = Decimal(found[1]) if found else value
    if not isinstance(number, Decimal) or number < 0:
        raise ValueError("a percentage looks like 30% or 12.5%")
    return number


Number = Annotated[Decimal, BeforeValidator(_decimal), WithJsonSchema(NUMBER)]
"""A number, kept exactly as written."""
Percentage = Annotated[
    Decimal,
    BeforeValidator(_percentage),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$", "examples": ["30%", "12.5%"]}),
]
"""`30%`, `12.5%`; kept as 30 and 12.5."""
Name = Annotated[str, StringConstraints(pattern=rf"^{_WORD}+$", max_length=63)]
"""A field or a column."""
Dotted = Annotated[str, StringConstraints(pattern=rf"^{_WORD}+(\.{_WORD}+){{0,3}}$", max_length=255)]
"""A field, or one of a related row: `chain.name`."""
Scalar = Annotated[str, StringConstraints(strict=True, max_length=500)] | bool | int | Number | None


def _one_or_many(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Wanted = Annotated[Scalar | tuple[Scalar, ...], BeforeValidator(_one_or_many)]
"""What a field has to be, or a list of what it may be."""


class ChangeCondition(SettingsSection):
    """A value that moved within a window."""

    over: Percentage = Field(description="By more than this, up or down.")
    within: Duration = Field(description="Since the last value at or before the window's beginning.")


class Top(SettingsSection):
    """The first rows in an order."""

    order_by: Name = Field(description="The field, largest first; ` asc`: smallest first.")
    take: int = Field(5, ge=1, le=50, strict=True, description="How many.")

    @property
    def field(self) -> str:
        """The field by which rows are ordered."""
        return self.order_by.removesuffix(" asc").removesuffix(" desc")

    @property
    def is_descending(self) -> bool:
        """Whether the order is descending."""
        return not self.order_by.endswith(" asc")


class Threshold(SettingsSection):
    """A value that is out of bounds."""

    above: Number | None = Field(None, description="Larger than this.")
    below: Number | None = Field(None, description="Smaller than this.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.above is None and self.below is None:
            raise ValueError("a threshold needs above, below or both")
        if self.above is not None and self.below is not None and self.below > self.above:
            raise ValueError("below is larger than above: every value would be reported")
        return self


class Outlier(SettingsSection):
    """A value far from the usual ones: robust z-score over 3.5, from 8 values."""

    within: Duration = Field(timedelta(days=7), description="The window to compare with.")
    score: Annotated[Number, at_least(Decimal("3.5")), OLD_LIMIT] = Decimal("3.5")
    """The robust z-score (by median absolute deviation) to exceed."""
    least: Annotated[int, Field(strict=True, le=1_000), at_least(8), OLD_LIMIT] = 8
    """Values that the window must have."""


KINDS = ("change", "new_since", "top", "threshold", "outlier", "missing")
VALUED = ("change", "threshold", "outlier")


QUERY = "query"
"""The prefix of the source name of a watch's own SQL: no watched table starts with it."""


class DatabaseWatch(SettingsSection):
    """One thing to watch. With none of the kinds' keys: rows that come to be as `where` describes, or cease to be."""

    name: Slug = Field(description="Its name in reports.")
    model: Dotted | None = Field(None, description="A model, a table or schema.table.")
    sql: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] | None = Field(
        None, description="Or one SELECT of your own."
    )
    where: dict[Name, Wanted] = Field(
        {}, description="Values that fields must have; a list: any of them. Alone: rows that begin or cease to match."
    )
    change: ChangeCondition | None = Field(None, description="A value that moved within a window.")
    new_since: Name | None = Field(None, description="New rows, by a field that only grows; 100 per look.")
    top: Top | None = Field(None, description="The first rows, when they change.")
    threshold: Threshold | None = Field(None, description="A value that gets out of bounds.")
    outlier: Outlier | None = Field(
        None, description="A value far from the usual ones: robust z-score over 3.5, from 8 values."
    )
    missing: Duration | None = Field(None, description="No new row for longer than this.")
    measured: Dotted | None = Field(
        None, alias="value", description="The field, count(RELATION) or sum(RELATION.FIELD)."
    )
    by: Name | None = Field(None, description="One series per value of this field.")
    at: Dotted | None = Field(None, description="The time of a row; with count and sum, of related rows.")
    include: tuple[Dotted, ...] = Field((), max_length=12, description="Fields to report, also related: chain.name.")
    unit: Annotated[str, StringConstraints(max_length=20)] = Field("", description="Of the value, such as % or ATOM.")
    kind: Slug = Field("anomaly", description="The kind of finding it is.")
    severity: Severity = Field(Severity.MEDIUM, description="Of its findings.")

    @property
    def sort(self) -> str:
        """Which kind of watch it is: one of `KINDS`, or `where`."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "where")

    @property
    def source(self) -> str:
        """The model or table, as written; for its own SQL, its source name."""
        return f"{QUERY} {self.name}" if self.sql else self.model or ""

    @property
    def value(self) -> str | None:
        """The watched field; None if computed from related rows."""
        return None if self.derived else self.measured

    @property
    def count(self) -> str | None:
        """The relation whose rows are counted."""
        return self._inside("count")

    @property
    def sum(self) -> str | None:
        """The relation and its field to sum."""
        return self._inside("sum")

    def _inside(self, function: str) -> str | None:
        found = re.fullmatch(rf"{function}\((.+)\)", self.measured or "")
        return found[1] if found else None

    @property
    def derived(self) -> bool:
        """Whether the value is computed from related rows."""
        return bool(self.count or self.sum)

    @model_validator(mode="wrap")
    @classmethod
    def _named(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(_lift_old_spellings(value))
        except ValidationError as error:
            raise ValueError(_complaint(value, error)) from None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for complaint in _complaints(self):
            raise ValueError(complaint)
        return self


def _lift_old_spellings(value: object) -> object:
    """Convert a table, a count, a sum and an order from older files to the present form; other values stay."""
    if not isinstance(value, Mapping):
        return value
    lifted = dict(value)
    if "table" in lifted and lifted.get("model") is None:
        lifted["model"] = lifted.pop("table")
    functions = [name for name in ("count", "sum") if lifted.get(name) is not None]
    if len(functions) == 1 and lifted.get("value") is None:
        lifted["value"] = f"{functions[0]}({lifted.pop(functions[0])})"
    top = lifted.get("top")
    if isinstance(top, Mapping) and top.get("order") in ("asc", "desc") and isinstance(top.get("order_by"), str):
        rest = {key: item for key, item in top.items() if key != "order"}
        lifted["top"] = {**rest, "order_by": f"{top['order_by']} {top['order']}"}
    return lifted


def _complaints(watch: DatabaseWatch) -> tuple[str, ...]:
    kinds = [kind for kind in KINDS if getattr(watch, kind) is not None]
    problems = {
        "name a model, a table or its own SQL": bool(watch.model) == bool(watch.sql),
        "its own SQL has no relations: leave count and sum out": bool(watch.sql and watch.derived),
        f"it is one kind of watch, not {' and '.join(kinds)}": len(kinds) > 1,
        f"it has a value: add one of {', '.join(VALUED)}": not kinds and bool(watch.measured),
        f"{watch.sort} needs a value": watch.sort in VALUED and not watch.measured,
        f"{watch.sort} has no value": watch.sort not in VALUED and bool(watch.measured),
        f"{watch.sort} needs at: the field that says when": watch.sort in ("outlier", "missing") and not watch.at,
        "a name that begins with `query ` is kept for SQL of your own": not watch.sql
        and watch.source.startswith(f"{QUERY} "),
        "an outlier is found among rows of its own: it takes a value": watch.sort == "outlier" and watch.derived,
        "sum names a relation and a field, such as delegations.amount": bool(watch.sum) and "." not in str(watch.sum),
        "of count and sum each row is a series of its own: leave by out": watch.derived and bool(watch.by),
    }
    return tuple(text for text, wrong in problems.items() if wrong)


class DatabaseSettings(SettingsSection):
    """What is watched in a database; its address comes from the environment."""

    backend: Literal["sqlalchemy", "prisma"] = Field("sqlalchemy", description="Which client asks.")
    prisma_schema: Annotated[str, StringConstraints(min_length=1, max_length=300)] | None = Field(
        None, description="The Prisma schema, a file or a folder; else names are of tables and columns."
    )
    address: Annotated[str, StringConstraints(pattern=r"^([A-Z0-9]+_)*DATABASE_URL$", max_length=60), OLD_LIMIT] = (
        "DATABASE_URL"
    )
    """The environment's variable that holds the address: a file that names another one means no other database."""
    raw_sql: Annotated[bool, Field(strict=True), OLD_LIMIT] = True
    """false: no watch may be SQL of its own."""
    watches: Annotated[tuple[DatabaseWatch, ...], AfterValidator(lambda watches: _distinct(watches))] = Field(
        (), max_length=100, description="What is watched."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.backend == "prisma" and self.prisma_schema is None:
            raise ValueError("the backend prisma needs prisma_schema, such as prisma/schema.prisma")
        for watch in (one for one in self.watches if one.sql):
            if self.backend == "prisma":
                raise ValueError(f"watch {watch.name}: sql needs the backend sqlalchemy")
            if not self.raw_sql:
                raise ValueError(f"watch {watch.name}: raw_sql: false forbids its sql; take one of them out")
        return self


def _distinct(watches: tuple[DatabaseWatch, ...]) -> tuple[DatabaseWatch, ...]:
    if len({watch.name for watch in watches}) < len(watches):
        raise ValueError("give each watch a name of its own")
    return watches


def _complaint(value: object, error: ValidationError) -> str:
    """The first error, a mistyped key before others, with the watch's own name."""
    first = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")[0]
    name = value.get("name") if isinstance(value, Mapping) else None
    subject = f"watch {ascii(name)[1:-1][:40]}" if isinstance(name, str) and name else "a watch without a name"
    path = [str(part) for part in first["loc"] if isinstance(value, Mapping)]
    if first["type"] == "extra_forbidden":
        return f"{subject}: unknown key {ascii('.'.join(path))[1:-1][:80]}; {_nearest(path)}"
    if first["type"] == "missing":
        return f"{subject}: add {'.'.join(path)}"
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_pattern_mismatch" and path[0] not in ("name", "kind"):
        what = "a name has no quotation marks, semicolons or line breaks; a Prisma schema can give it another (@map)"
    return f"{subject}: {'.'.join(path[:2])}: {what}" if path else f"{subject}: {what}"


def _nearest(path: list[str]) -> str:
    sections: dict[str, type[BaseModel]] = {
        "change": ChangeCondition,
        "top": Top,
        "threshold": Threshold,
        "outlier": Outlier,
    }
    fields = (sections.get(path[0], DatabaseWatch) if len(path) > 1 else DatabaseWatch).model_fields
    known = [field.alias or name for name, field in fields.items()]
    close = difflib.get_close_matches(path[-1], known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
