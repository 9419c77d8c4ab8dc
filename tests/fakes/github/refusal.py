"""How the API says no, in GitHub's words and shapes."""

from __future__ import annotations

from typing import Any

DOCS = "https://docs.github.com/rest"


class Refusal(Exception):
    """An error reply."""

    def __init__(self, status: int, message: str, errors: list[Any] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, errors

    @staticmethod
    def invalid(resource: str, field: str, code: str) -> Refusal:
        """422 about one field: missing, missing_field, invalid, already_exists, unprocessable."""
        return Refusal(422, "Validation Failed", [{"resource": resource, "field": field, "code": code}])

    @staticmethod
    def custom(resource: str, message: str, field: str | None = None) -> Refusal:
        """422 with a sentence."""
        where = {"resource": resource, "code": "custom", **({"field": field} if field else {}), "message": message}
        return Refusal(422, "Validation Failed", [where])

    @property
    def payload(self) -> dict[str, Any]:
        """The JSON of the reply."""
        errors = {} if self.errors is None else {"errors": self.errors}
        return {"message": self.message, **errors, "documentation_url": DOCS, "status": str(self.status)}


class Unknown(Exception):
    """Something that the fake does not know: 501, and remembered."""
