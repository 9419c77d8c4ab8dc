"""A separate program with the generated client: one JSON query per line in, one JSON answer per line out.

Its environment has the database's URL and nothing else of ours. The engine's output is discarded, because it may
contain that URL.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

SECONDS = 20


def main() -> None:
    """`prisma_worker.py FOLDER`: answer until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, sys.argv[1])
    client = _connect()
    try:
        for line in sys.stdin:
            print(json.dumps(_answer(client, json.loads(line)), ensure_ascii=False), file=out, flush=True)
    finally:
        client.disconnect()


def _connect() -> Any:
    package = importlib.import_module("ralph_client")
    http = {"headers": {"x-ralph": os.environ["RALPH_ENGINE_KEY"]}, "timeout": None, "trust_env": False}
    client = package.Prisma(use_dotenv=False, http=http, connect_timeout=SECONDS)
    client.connect()
    return client


def _answer(client: Any, request: dict[str, Any]) -> dict[str, Any]:
    if not request:
        return {"ready": True}
    try:
        return {"rows": [list(row.values()) for row in client.query_raw(request["sql"], *request["values"])]}
    except Exception as error:
        return {"error": _error_names(error)}


def _error_names(error: Exception) -> dict[str, str]:
    """The type and Prisma's code, and the server's; never the text, which may hold rows or an address."""
    data = getattr(error, "data", None)
    facing = data.get("user_facing_error", data) if isinstance(data, dict) else {}
    meta = facing.get("meta") if isinstance(facing, dict) else None
    return {
        "type": type(error).__name__,
        "code": str(facing.get("error_code", "")) if isinstance(facing, dict) else "",
        "state": str(meta.get("code", "")) if isinstance(meta, dict) else "",
    }


if __name__ == "__main__":
    main()
