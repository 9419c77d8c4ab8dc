"""How each provider asks and answers. Pure: a request's JSON and a reply in, JSON or a list of events out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.model.script import Call, Reply, Text

Json = dict[str, Any]
DONE = "[DONE]"


class Unknown(Exception):
    """A request that this model does not know."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """`messages` is where the conversation stands; `events` names each event of a stream by its type."""

    name: str
    messages: str
    whole: Callable[[Json, Reply, str], Json]
    stream: Callable[[Json, Reply, str], Sequence[Json | str]]
    error: Callable[[int, str], Json]
    events: bool = True

    def checked(self, body: Any) -> Json:
        """The request. Raises Unknown for one without a conversation."""
        if not isinstance(body, dict) or not body.get(self.messages):
            raise Unknown(f"{self.name}: no {self.messages}")
        return body

    @staticmethod
    def tools(body: Json) -> tuple[str, ...]:
        """The names of the tools that are offered."""
        stated = body["input"] if isinstance(body.get("input"), list) else []
        within = [tool for item in stated if item.get("type") == "additional_tools" for tool in item["tools"]]
        return tuple(_tool_names([*(body.get("tools") or []), *within]))


def _tool_names(tools: Sequence[Json]) -> Sequence[str]:
    names: list[str] = []
    for tool in tools:
        declared = tool.get("functionDeclarations") or tool.get("tools")  # Gemini; a namespace of Responses
        function = tool.get("function")
        if isinstance(declared, list):
            names += _tool_names(declared)
        elif isinstance(function, dict):
            names.append(function["name"])
        else:
            names.append(str(tool.get("name") or tool.get("type") or next(iter(tool), "?")))
    return names


# --- Anthropic: Messages --------------------------------------------------------------

ANTHROPIC_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip  # one table


def _anthropic(body: Json, reply: Reply, name: str) -> Json:
    content = [_anthropic_block(block, f"toolu_{name}_{at}") for at, block in enumerate(reply.blocks)]
    usage = {
        "input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    }  # fmt: skip  # one value
    return {
        "id": f"msg_{name}", "type": "message", "role": "assistant", "model": body.get("model"), "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip  # one value


def _anthropic_block(block: Text | Call, name: str) -> Json:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": name, "name": block.tool, "input": block.input}


def _anthropic_stream(body: Json, reply: Reply, name: str) -> Sequence[Json]:
    whole = _anthropic(body, reply, name)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": begun}]
    for at, block in enumerate(whole["content"]):
        empty, delta = _anthropic_delta(block)
        events += [
            {"type": "content_block_start", "index": at, "content_block": empty},
            {"type": "content_block_delta", "index": at, "delta": delta},
            {"type": "content_block_stop", "index": at},
        ]
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": reply.output_tokens}
    return [*events, {"type": "message_delta", "delta": ended, "usage": usage}, {"type": "message_stop"}]


def _anthropic_delta(block: Json) -> tuple[Json, Json]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def _anthropic_error(status: int, message: str) -> Json:
    return {"type": "error", "error": {"type": ANTHROPIC_ERRORS.get(status, "api_error"), "message": message}}


# --- OpenAI: Responses ----------------------------------------------------------------


def _responses(body: Json, reply: Reply, name: str) -> Json:
    read, written = reply.input_tokens, reply.output_tokens
    usage = {
        "input_tokens": read, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": read + written,
    }  # fmt: skip  # one value
    return {
        "id": f"resp_{name}", "object": "response", "created_at": 0, "model": body.get("model"), "status": "completed",
        "output": [_responses_item(block, f"{name}_{at}") for at, block in enumerate(reply.blocks)], "usage": usage,
    }  # fmt: skip  # one value


def _responses_item(block: Text | Call, name: str) -> Json:
    if isinstance(block, Text):
        content = [{"type": "output_text", "text": block.text, "annotations": []}]
        return {"type": "message", "id": f"m_{name}", "role": "assistant", "status": "completed", "content": content}
    item = {"id": f"c_{name}", "call_id": f"call_{name}", "name": block.tool}
    if isinstance(block.input, str):
        return {"type": "custom_tool_call", **item, "input": block.input}
    return {"type": "function_call", **item, "arguments": json.dumps(block.input)}


def _responses_stream(body: Json, reply: Reply, name: str) -> Sequence[Json]:
    whole = _responses(body, reply, name)
    begun = {**whole, "output": [], "status": "in_progress"}
    items = [
        {"type": f"response.output_item.{what}", "output_index": at, "item": item}
        for at, item in enumerate(whole["output"])
        for what in ("added", "done")
    ]
    return [
        {"type": "response.created", "response": begun}, *items, {"type": "response.completed", "response": whole}
    ]  # fmt: skip  # one value


def _openai_error(status: int, message: str) -> Json:
    kind = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status, "server_error" if status >= 500 else None)
    return {"error": {"message": message, "type": kind or "invalid_request_error", "param": None, "code": kind}}


# --- OpenAI: Chat completions ---------------------------------------------------------


def _chat(body: Json, reply: Reply, name: str) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_chat_call(one, f"call_{name}_{at}") for at, one in enumerate(reply.calls)]
    finish = "tool_calls" if reply.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_chat_head(body, name), "object": "chat.completion", "choices": [choice], "usage": _chat_usage(reply)}


def _chat_head(body: Json, name: str) -> Json:
    return {"id": f"cc_{name}", "created": 0, "model": body.get("model")}


def _chat_call(block: Call, name: str) -> Json:
    return {"id": name, "type": "function", "function": {"name": block.tool, "arguments": json.dumps(block.input)}}


def _chat_usage(reply: Reply) -> Json:
    read, written = reply.input_tokens, reply.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _chat_stream(body: Json, reply: Reply, name: str) -> Sequence[Json | str]:
    whole = _chat(body, reply, name)["choices"][0]
    delta = dict(whole["message"])
    if reply.calls:
        delta["tool_calls"] = [{"index": at, **one} for at, one in enumerate(delta["tool_calls"])]
    head = {**_chat_head(body, name), "object": "chat.completion.chunk"}
    return [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": whole["finish_reason"]}]},
        {**head, "choices": [], "usage": _chat_usage(reply)},
        DONE,
    ]


# --- Google: generateContent ----------------------------------------------------------

GEMINI_ERRORS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}  # fmt: skip  # one table


def _gemini(body: Json, reply: Reply, name: str) -> Json:
    parts = [_gemini_part(block) for block in reply.blocks]
    read, written = reply.input_tokens, reply.output_tokens
    usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": name}


def _gemini_part(block: Text | Call) -> Json:
    if isinstance(block, Text):
        return {"text": block.text}
    return {"functionCall": {"name": block.tool, "args": block.input}}


def _gemini_error(status: int, message: str) -> Json:
    return {"error": {"code": status, "message": message, "status": GEMINI_ERRORS.get(status, "INTERNAL")}}


ANTHROPIC = Dialect("anthropic", "messages", _anthropic, _anthropic_stream, _anthropic_error)
RESPONSES = Dialect("responses", "input", _responses, _responses_stream, _openai_error)
CHAT = Dialect("chat", "messages", _chat, _chat_stream, _openai_error, events=False)
GEMINI = Dialect("gemini", "contents", _gemini, lambda *asked: [_gemini(*asked)], _gemini_error, events=False)


def of(path: str) -> Dialect:
    """The dialect that is spoken at `path`. Raises Unknown."""
    if path.endswith("/messages"):
        return ANTHROPIC
    if path.endswith("/responses"):
        return RESPONSES
    if path.endswith("/chat/completions"):
        return CHAT
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return GEMINI
    raise Unknown(path)


def beside(path: str, body: Any) -> Mapping[str, Any] | None:
    """What is asked besides and costs no reply: how many tokens a text has; None for everything else."""
    if path.endswith("/messages/count_tokens"):
        return {"input_tokens": 1000}
    return {"totalTokens": 100} if path.endswith(":countTokens") else None
