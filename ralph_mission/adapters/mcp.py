"""The loop's files as tools of the Model Context Protocol, so that an agent pays no process start per call.

Heavy: imported by `ralph agent mcp` alone. The same locked files as `ralph agent task` and `guidance`; nothing is kept
between two calls. What a person could fix is an error of the tool, which the agent reads and acts upon.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, Tool, ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.notes import Memories
from ralph_mission.adapters.storage.loop.stories import SessionStories
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import LoopTask, TaskStatus, UserStory
from ralph_mission.loop.prompt.situation import LoopMemory
from ralph_mission.loop.rules import routing as lifecycle
from ralph_mission.values import compile_regex, dataclass

INSTRUCTIONS = (
    "Work, events, memories and guidance of the loop you are in. work_current tells what is yours to do; take a task "
    "with work_claim before you work on it, end work with work_done or work_fail, and your session with one event_emit."
)
READ_ONLY = frozenset({"work_current", "work_list", "memory_search"})
"""Tools that change nothing; guidance_read may acknowledge."""
ALIASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "task_add": ("work_add", {}), "task_list": ("work_list", {}), "task_ready": ("work_list", {"ready": True}),
    "task_claim": ("work_claim", {}), "task_done": ("work_done", {}), "task_fail": ("work_fail", {}),
}  # fmt: skip  # one table
"""Names of earlier versions, which are answered and not listed."""
COMMANDS = (
    (compile_regex(r"ralph agent task list --ready"), "work_list (ready)"),
    (compile_regex(r"ralph agent task done \S+ --failed"), "work_fail"),
    (compile_regex(r"ralph agent task (\w+)"), r"work_\1"),
)
"""Commands in hints, and the tools that agents have instead."""
Kind = Literal["pattern", "decision", "fix", "context"]
NO_TEXT = compile_regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
"""What would steer a terminal, and what stands where the client sent no character at all."""
LONG, PAYLOAD, ID = 20_000, 100_000, 64
"""Characters of a text, of an event's payload (as `ralph agent emit`), of an id."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What is served. `emit` says an event with a payload; `owner` is who claims through this server; `session` is the
    number of its session in the run."""

    tasks: Tasks
    memories: Memories
    guidance: Guide
    emit: Callable[[str, str], None]
    owner: str
    stories: SessionStories
    session: int = 0


class TaskFacts(BaseModel):
    """A task, or a story of the run; `waits` says what a pending task waits for."""

    id: str
    title: str
    status: TaskStatus
    priority: int
    needs: list[str]
    waits: str
    owner: str
    description: str
    kind: Literal["task", "story"] = "task"
    criteria: list[str] = []
    notes: str = ""


class CurrentWork(BaseModel):
    """What this session works on; without anything, what to do instead. `session`: its number in the run, 0 outside of
    one; `left`: stories and tasks that are not done."""

    work: TaskFacts | None = None
    next: str = ""
    session: int = 0
    left: int = 0


class NoteReceipt(BaseModel):
    """Where a note was kept."""

    kept: str


class TaskFactsList(BaseModel):
    """Tasks, how many more there are, and what is wrong with the list."""

    tasks: list[TaskFacts]
    more: int = 0
    complaints: list[str] = []


class MemoryFacts(BaseModel):
    """A memory; `created` is a date."""

    id: str
    kind: str
    content: str
    tags: list[str]
    created: str


class MemoryList(BaseModel):
    """Memories, and how many more there are."""

    memories: list[MemoryFacts]
    more: int = 0


class GuidanceFacts(BaseModel):
    """A person's word."""

    id: str
    text: str
    at: str


class GuidanceList(BaseModel):
    """People's words that no session was given yet."""

    guidance: list[GuidanceFacts]


class EventReceipt(BaseModel):
    """The event as it was emitted."""

    topic: str
    payload: str


def serve(run_files: RunFiles, version: str) -> None:
    """Answer on standard input and output until the client closes them."""
    if sys.stdin is not None:  # as it is where somebody closed it: then nobody asks
        try:
            server(run_files, version).run("stdio")
        except* BrokenPipeError:
            pass  # the client has gone, which is how it ends


def server(run_files: RunFiles, version: str) -> MCPServer[Any]:
    """The server with all its tools."""
    result = _StrictServer("ralph", instructions=INSTRUCTIONS, version=version, log_level="ERROR")
    for tools in (_task_tools, _event_tools, _memory_tools, _guidance_tools):
        for tool in tools(run_files):
            reads = tool.__name__ in READ_ONLY
            hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
            result.tool(annotations=hints)(_with_tool_errors(tool))
    return result


class _StrictServer(MCPServer[Any]):
    """Refuses arguments that a tool does not know, by name, and says in our words what is wrong with the others."""

    async def list_tools(self) -> list[Tool]:
        """The tools, each closed to arguments that it does not name."""
        closed = {"additionalProperties": False}
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, **closed}})
            for tool in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """What the tool gives. Raises ToolError with what to change."""
        name, usual = ALIASES.get(name, (name, {}))
        arguments = {**usual, **arguments}
        tool = next((tool for tool in await self.list_tools() if tool.name == name), None)
        known = tool.input_schema.get("properties", {}) if tool else arguments
        if unknown := [argument for argument in arguments if argument not in known]:
            named = ", ".join(repr(argument[:ID]) for argument in unknown[:5])
            raise ToolError(f"{name} has no argument {named}; it takes {', '.join(known) or 'none'}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as problem:
            if isinstance(problem.__cause__, ToolError):
                raise problem.__cause__ from None  # in our words alone
            if not isinstance(problem.__cause__, ValidationError):
                raise
            wrong = problem.__cause__.errors(include_url=False, include_input=False)
            raise ToolError("; ".join(map(_describe_wrong, wrong[:5]))) from None


WRONG = {
    "missing": "is missing",
    "string_type": "has to be text",
    "string_unicode": "holds a character that cannot be read",
    "string_pattern_mismatch": "has to be a letter, then at most 99 letters, digits and any of _ . : / -",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_parsing_size": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "finite_number": "has to be a whole number",
    "float_type": "has to be a number",
    "float_parsing": "has to be a number",
    "bool_type": "has to be true or false",
    "bool_parsing": "has to be true or false",
    "list_type": "has to be a list",
    "dict_type": "has to be an object",
    "literal_error": "has to be one of {expected}",
    "greater_than_equal": "has to be at least {ge}",
    "less_than_equal": "has to be at most {le}",
    "string_too_long": "is longer than {max_length} characters",
    "too_long": "has more than {max_length} items",
}
"""What is wrong with an argument, by pydantic's name for it."""


def _describe_wrong(error: ErrorDetails) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if words := WRONG.get(error["type"]):
        return f"{name} {words.format(**error.get('ctx', {}))}"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}"


def _text(text: str) -> str:
    if NO_TEXT.search(text):
        raise ValueError("it holds a control character, or one that cannot be read: leave it out")
    return text


def _line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("it has to be one line")
    return _text(text)


Text = Annotated[str, Field(max_length=LONG), AfterValidator(_text)]
Line = Annotated[str, Field(max_length=1000), AfterValidator(_line)]
Name = Annotated[str, Field(max_length=ID), AfterValidator(_line)]
Id = Annotated[Name, Field(description="the id of a task")]
Limit = Annotated[int, Field(ge=1, le=1000, description="how many at most; `more` counts the others")]


def _task_tools(run_files: RunFiles) -> tuple[Callable[..., Any], ...]:
    tasks = run_files.tasks

    def facts(task: LoopTask) -> TaskFacts:
        return _facts(tasks.all() if task.status == "pending" else (), task)

    async def work_current() -> CurrentWork:
        """What is yours to do in this session: the story that was given, or the task that you took; and how much is
        left in the run."""
        every = tasks.all()
        left = sum(one.status != "done" for one in every) + sum(now != "done" for _, now in run_files.stories.all())
        now = CurrentWork(session=run_files.session, left=left)
        if story := run_files.stories.current():
            return now.model_copy(update={"work": _story_facts(story, "active")})
        mine = next((task for task in every if task.status == "active" and task.owner == run_files.owner), None)
        if mine:
            return now.model_copy(update={"work": _facts(every, mine)})
        following = "take a task with work_claim" if lifecycle.ready(every) else "nothing is ready"
        return now.model_copy(update={"next": following})

    async def work_list(
        status: Annotated[TaskStatus | None, Field(description="only these")] = None,
        ready: Annotated[bool, Field(description="only tasks that can be claimed, first things first")] = False,
        limit: Limit = 20,
    ) -> TaskFactsList:
        """The stories of the run, then the tasks in the order they were added, and what is wrong with the list."""
        every = tasks.all()
        if ready:
            return _page(every, lifecycle.ready(every), limit)
        shown = [task for task in every if status in (None, task.status)]
        stories = [_story_facts(story, now) for story, now in run_files.stories.all() if status in (None, now)]
        page = _page(every, shown, max(0, limit - len(stories)), tasks.complaints())
        more = page.more + max(0, len(stories) - limit)
        return page.model_copy(update={"tasks": [*stories[:limit], *page.tasks], "more": more})

    async def work_add(
        title: Annotated[Line, Field(description="what is to be done, in one line", max_length=lifecycle.TITLE)],
        needs: Annotated[list[Name], Field(description="ids of tasks that must be done before", max_length=1000)] = [],  # noqa: B006  # the schema's default; never changed
        priority: Annotated[int, Field(ge=1, le=5, description="1 goes first")] = 3,
        description: Annotated[Text, Field(max_length=lifecycle.DESCRIPTION)] = "",
        id: Annotated[Name, Field(description="its name; one is made up without")] = "",
    ) -> TaskFacts:
        """Put a task on the list. It is ready as soon as all it needs is done. Only people add stories."""
        return facts(tasks.add(title, needs, priority, description, id))

    async def work_claim(
        id: Annotated[Name, Field(description="which; without, the first that is ready")] = "",
    ) -> TaskFacts:
        """Take a task: nobody else gets it while you work on it."""
        return facts(tasks.claim(run_files.owner, id))

    async def work_done(id: Id) -> TaskFacts:
        """Say that a task or story is done. A task's dependents become ready; a story passes once the loop agrees."""
        story = run_files.stories.done(id)
        return _story_facts(story, "done") if story else facts(tasks.done(id))

    async def work_fail(id: Id, why: Annotated[Text, Field(description="what went wrong")] = "") -> TaskFacts:
        """Say that it cannot be done. What needs a failed task stays pending until somebody claims it by its id and
        does it; a story gets a note for the next session."""
        story = run_files.stories.note(id, f"failed: {why}" if why else "failed")
        return _story_facts(story, "ready") if story else facts(tasks.fail(id, why))

    async def work_note(
        text: Annotated[Text, Field(description="what whoever works on it next should know", max_length=4000)],
        id: Annotated[Name, Field(description="the story it is about; without, the one of this session")] = "",
    ) -> NoteReceipt:
        """Leave a note with a story; where there is none, as a memory for all later sessions."""
        current = run_files.stories.current()
        about = id or (current.id if current else "")
        if about and (story := run_files.stories.note(about, text)):
            return NoteReceipt(kept=f"with {story.id}")
        if id:
            lifecycle.find(tasks.all(), id)  # or a mistyped id would be lost among the memories
        run_files.memories.add(text, "context", [about] if about else [])
        return NoteReceipt(kept="as a memory")

    return work_current, work_list, work_add, work_claim, work_done, work_fail, work_note


def _event_tools(run_files: RunFiles) -> tuple[Callable[..., Any], ...]:
    async def event_emit(
        topic: Annotated[str, Field(pattern=r"^[A-Za-z][\w.:/-]{0,99}$", description="such as build.complete")],
        payload: Annotated[JsonValue, Field(description="a text, or an object")] = "",
    ) -> EventReceipt:
        """Say the one event that ends your session; the loop hears it when you stop."""
        text = check_payload(payload)
        run_files.emit(topic, text)
        return EventReceipt(topic=topic, payload=text)

    return (event_emit,)


def _memory_tools(run_files: RunFiles) -> tuple[Callable[..., Any], ...]:
    async def memory_add(
        content: Annotated[Text, Field(description="what later sessions should know", max_length=4000)],
        kind: Annotated[Kind, Field(description="what sort of knowledge it is")] = "pattern",
        tags: Annotated[list[Name], Field(max_length=10)] = [],  # noqa: B006  # the schema's default; never changed
    ) -> MemoryFacts:
        """Remember something for all later sessions."""
        return _memory(run_files.memories.add(content, kind, tags))

    async def memory_search(
        query: Annotated[Line, Field(description="words that must all be in it; empty for everything")] = "",
        limit: Limit = 20,
    ) -> MemoryList:
        """Find memories by words in their text or tags."""
        found = run_files.memories.search(query)
        return MemoryList(memories=[_memory(one) for one in found[:limit]], more=max(0, len(found) - limit))

    return memory_add, memory_search


def _guidance_tools(run_files: RunFiles) -> tuple[Callable[..., Any], ...]:
    async def guidance_read(
        acknowledge: Annotated[bool, Field(description="true when you act upon it: no later session gets it")] = False,
    ) -> GuidanceList:
        """What people wrote since this session began."""
        words = run_files.guidance.pending()
        if acknowledge:
            run_files.guidance.acknowledge([one.id for one in words])
        return GuidanceList(guidance=[GuidanceFacts(id=one.id, text=one.text, at=one.at.isoformat()) for one in words])

    return (guidance_read,)


def _with_tool_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what a person or the machine can cause into an error of the tool, with what to do next."""

    @wraps(tool)
    async def explained(*arguments: Any, **named: Any) -> Any:
        try:
            return await tool(*arguments, **named)
        except UserError as problem:
            hint = problem.next_step
            for command, name in COMMANDS:
                hint = command.sub(name, hint)
            raise ToolError(f"{problem.what}. {hint}") from None
        except OSError as error:
            raise ToolError(f"{error.filename or 'a file'}: {error.strerror or error}") from None

    return explained


def _page(
    every: Sequence[LoopTask], shown: Sequence[LoopTask], limit: int, complaints: Sequence[str] = ()
) -> TaskFactsList:
    page = [_facts(every, task) for task in shown[:limit]]
    return TaskFactsList(tasks=page, more=max(0, len(shown) - limit), complaints=list(complaints))


def _facts(every: Sequence[LoopTask], task: LoopTask) -> TaskFacts:
    return TaskFacts(
        id=task.id,
        title=task.title,
        status=task.status,
        priority=task.priority,
        needs=list(task.needs),
        waits=lifecycle.waits(every, task),
        owner=task.owner,
        description=task.description,
    )


def _story_facts(story: UserStory, status: TaskStatus) -> TaskFacts:
    return TaskFacts(
        id=story.id,
        title=story.title,
        status=status,
        priority=story.priority,
        needs=list(story.needs),
        waits="",
        owner="",
        description=story.description,
        kind="story",
        criteria=list(story.criteria),
        notes=story.notes,
    )


def _memory(memory: LoopMemory) -> MemoryFacts:
    tags = list(memory.tags)
    return MemoryFacts(id=memory.id, kind=memory.kind, content=memory.content, tags=tags, created=memory.created)


def check_payload(value: JsonValue) -> str:
    """The payload of an event as text. Raises UserError when it is too long or cannot be read."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > PAYLOAD or NO_TEXT.search(text):
        less = f"at most {PAYLOAD:,} characters that can be read, or name a file"
        raise UserError("the payload is too long, or holds control characters", less)
    return text
