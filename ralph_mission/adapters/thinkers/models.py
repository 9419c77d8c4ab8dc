"""Asks a model through `pydantic-ai`: one question, at most one retry after a bad answer, with limits on everything.

Key and base URL come from the environment; the HTTP client limits the size of answers. Libraries are imported on
demand. Failures are sentences for whoever must act, without text from the provider. Prices are those built into
`genai-prices`.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.http.deadline import call_within
from ralph_mission.adapters.thinkers.llm import ModelAnswer, ModelQuestion, Reply, size, wrong
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai import Agent
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RunUsage

ANSWER = 512 * 1024  # bytes
VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
"""By provider: the variables of its key and of another base URL."""


class TooLong(Exception):
    """An answer over the size limit."""


@dataclass(frozen=True, slots=True)
class Access:
    """Model, key and URL; `base_url` None: the provider's default."""

    provider: str
    model: str
    key: str
    base_url: str | None = None


def access(model: str, environ: Mapping[str, str]) -> Access:
    """The access for `provider:name`. Raises UserError that names a missing key."""
    provider, _, name = model.partition(":")
    key, base = VARIABLES[provider]
    if not environ.get(key):
        raise UserError(f"{key} is not set", f"set {key} in the environment")
    return Access(provider, name, environ[key], environ.get(base) or None)


def client(seconds: float, limit: int = ANSWER) -> httpx2.AsyncClient:
    """A client without redirects, with a time-out of `seconds`, that raises TooLong beyond `limit` bytes."""
    import httpx2

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner, self._left = inner, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                self._left -= len(piece)
                if self._left < 0:
                    raise TooLong
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":  # else it could grow without limit
            raise TooLong
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Counted(response.stream)

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds),
        headers={"accept-encoding": "identity"},
        follow_redirects=False,
        event_hooks={"response": [bound]},
    )


EXTRA = install_command("llm")
TOOL = "rank_findings"
MISSING = Reply(None, f"the part of ralph that asks models is not installed: {EXTRA}")
GRACE = 2.0  # seconds that an interrupted request has to close its connection
BY_STATUS = {
    400: "refused the request (400): look at thinker.model in ralph.yml",
    401: "refused the key (401): set a valid one in the environment",
    403: "refused the key (403): it may not use this model",
    404: "does not know this model (404): look at thinker.model in ralph.yml",
    429: "has enough of us for now (429): the next cycle asks again",
    529: "is overloaded (529): the next cycle asks again",
}


@dataclass(frozen=True, slots=True)
class ModelAsk:
    """`llm.Ask` for a real provider. `access` may raise UserError, which becomes the reason."""

    access: Callable[[], Access]
    seconds: float
    tries: int
    max_output: int

    def __call__(self, question: ModelQuestion) -> Reply:
        """Ask within `seconds`, whatever happens."""
        try:
            access = self.access()
            import pydantic_ai  # noqa: F401  # says here, and not in a thread, that it is missing
        except ImportError:
            return MISSING
        except UserError as problem:
            return Reply(None, f"{problem.what}: {problem.next_step}")
        late = Reply(None, f"it took longer than {self.seconds:g} seconds: the next cycle asks again", doubtful=1)
        return _within(self.seconds + GRACE, lambda: self._send_question(access, question, late), late)

    async def _send_question(self, access: Access, question: ModelQuestion, late: Reply) -> Reply:
        from pydantic_ai.usage import RunUsage, UsageLimits

        spent, sent = RunUsage(), _Sent()
        async with client(self.seconds) as http:
            http.event_hooks["request"].append(sent)
            limits = UsageLimits(request_limit=self.tries)
            try:
                async with asyncio.timeout(self.seconds):
                    agent = self._agent(access, http, question)
                    run = await agent.run(question.text, usage=spent, usage_limits=limits)
                reply = Reply(run.output)
            except TimeoutError:
                reply = late
            except Exception as error:  # whatever the library raises
                reply = _failed_reply(error)
        return _with_usage(reply, spent, sent.requests, self._most(question))

    def _most(self, question: ModelQuestion) -> tuple[int, int]:
        """The most tokens a request can have used, doubled, as providers count differently."""
        return 2 * (size(question) + self.max_output), 2 * self.max_output

    def _agent(self, access: Access, http: httpx2.AsyncClient, question: ModelQuestion) -> Agent[object, ModelAnswer]:
        from pydantic_ai import Agent, ModelRetry, ToolOutput

        agent: Agent[object, ModelAnswer] = Agent(
            _model(access, http),
            output_type=ToolOutput(ModelAnswer, name=TOOL),
            instructions=question.order,
            retries={"output": self.tries - 1, "tools": self.tries - 1},
            model_settings={"max_tokens": self.max_output, "max_retries": 0, "timeout": self.seconds},
        )

        @agent.output_validator
        def checked(answer: ModelAnswer) -> ModelAnswer:
            if problem := wrong(answer, question.kinds):
                raise ModelRetry(problem)
            return answer

        return agent


def why_unreachable(access: Access, seconds: float) -> str:
    """Why this model's provider cannot be reached, or "". Free: it only lists models."""
    late = Reply(None, "its provider does not answer: look at the network")
    return _within(seconds + GRACE, lambda: _listed(access, seconds), late).problem


async def _listed(access: Access, seconds: float) -> Reply:
    async with client(seconds) as http:
        try:
            sdk: Any = _model(access, http).client  # type: ignore[attr-defined]  # of these models
            async with asyncio.timeout(seconds):
                await sdk.with_options(max_retries=0).models.list()
            return Reply(None)
        except Exception as error:
            status = getattr(error, "status_code", None)
            if status == 404:  # an OpenAI-compatible server may have no list
                other = access.provider == "openai-chat"
                return Reply(
                    None, "" if other else "it has no list of models (404): check its address in the environment"
                )
            return _refused_reply(status) if isinstance(status, int) else _failed_reply(error)


class _Sent:
    """Counts requests before they are sent."""

    def __init__(self) -> None:
        self.requests = 0

    async def __call__(self, request: httpx2.Request) -> None:
        self.requests += 1


def _model(access: Access, http: httpx2.AsyncClient) -> Model[Any]:
    if access.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(api_key=access.key, base_url=access.base_url, http_client=http)
        return AnthropicModel(access.model, provider=provider)
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel if access.provider == "openai-chat" else OpenAIResponsesModel
    return model(access.model, provider=OpenAIProvider(api_key=access.key, base_url=access.base_url, http_client=http))


def _failed_reply(error: Exception) -> Reply:
    """The reply for a failure. A request answered by an error cost nothing."""
    from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded

    causes = tuple(_causes(error))
    if isinstance(error, ImportError):  # of the one provider
        return MISSING
    if any(isinstance(one, TooLong) for one in causes):
        return Reply(None, "its answer was too long", final=True, doubtful=1)
    if isinstance(error, ModelHTTPError):
        return _refused_reply(error.status_code)
    if isinstance(error, UnexpectedModelBehavior | UsageLimitExceeded):
        return Reply(None, "its answers did not fit what was asked", final=True)
    names = {type(one).__name__ for one in causes}
    if names & {"ConnectError", "ConnectTimeout"}:
        return Reply(None, "its provider cannot be reached: look at the network; the next cycle asks again")
    if any("Timeout" in name for name in names):
        return Reply(None, "it took too long to answer: the next cycle asks again", doubtful=1)
    if isinstance(error, ValueError | TypeError | AttributeError | RecursionError):  # of a library that read it
        return Reply(None, "its answer cannot be read", final=True, doubtful=1)
    return Reply(None, f"its answer did not arrive ({type(error).__name__}): the next cycle asks again", doubtful=1)


def _refused_reply(status: int) -> Reply:
    usual = f"answered {status}: the next cycle asks again"
    return Reply(None, f"its provider {BY_STATUS.get(status, usual)}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _with_usage(reply: Reply, spent: RunUsage, sent: int, most: tuple[int, int]) -> Reply:
    """The reply with its usage. An answer without plausible token counts has an unknown cost."""
    read, written, answers = spent.input_tokens, spent.output_tokens, spent.requests
    doubtful = min(reply.doubtful, max(0, sent - answers))
    if answers and not (0 < read <= answers * most[0] and 0 < written <= answers * most[1]):
        read, written, doubtful = 0, 0, doubtful + answers
    return replace(reply, requests=sent, input_tokens=read, output_tokens=written, doubtful=doubtful)


def _within(seconds: float, work: Callable[[], Coroutine[Any, Any, Reply]], late: Reply) -> Reply:
    """The result of the call, or `late`: a hanging name look-up or library does not block."""

    def run() -> Reply:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries repeat a provider's words in warnings
            return asyncio.run(work())

    try:
        return call_within(seconds, run, "ralph thinker")
    except TimeoutError:
        return late


def listed_price(provider: str, model: str, read: int, written: int) -> float | None:
    """USD for input and output tokens; None if the model is not listed."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        usage = Usage(input_tokens=read, output_tokens=written)
        return float(calc_price(usage, model, provider_id=provider.removesuffix("-chat")).total_price)
    except LookupError:
        return None
