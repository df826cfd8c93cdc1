/**
 * The tools for child threads: start, send, wait, close. The engine carries them out; here are their arguments, their item
 * and what the model is told, which for all of them is JSON as Codex answers it.
 */
import type { ChildState, HeddleError, InputPart, ItemOf } from "@heddle/protocol";
import { never, toHeddleError } from "@heddle/protocol";
import { fitText } from "../calls/fit-text.ts";
import { jsonTool } from "../calls/call-item.ts";
import type { ChildThreads, ChildTool } from "../calls/child-threads.ts";
import type { CallContext, Tool, ToolContext, ToolResult } from "../calls/tool.ts";
import { z } from "./schema.ts";

type Item = ItemOf<"collabToolCall">;

/** For one child; the whole is in its own thread. */
const MAX_MESSAGE_BYTES = 32 * 1024;
const MAX_STORED_BYTES = 4 * 1024;
const MAX_PROMPT_CHARS = 100_000;
/** Of one call of `wait_agent`; a shorter wait than the least is polling. */
const WAIT_MS = { least: 1000, usual: 30_000, most: 3_600_000 } as const;
/** To stop what a child does, with everything that runs in it. */
const STOP_MS = 15_000;
/** To open a sandbox and admit a turn. */
const START_MS = 60_000;
const MAX_TARGETS = 64;

const target = z.string().check(z.minLength(1), z.maxLength(64), z.describe("Agent id"));
const message = z.string().check(z.minLength(1), z.maxLength(MAX_PROMPT_CHARS));

const SpawnInput = z.object({
  message: message.check(z.describe("The task, complete in itself: the agent sees nothing else of this thread")),
  model: z.optional(z.string().check(z.maxLength(200), z.describe("Default: yours"))),
  reasoning_effort: z.optional(z.string().check(z.maxLength(64))),
  sandbox: z.optional(
    z
      .enum(["read-only", "workspace-write", "danger-full-access"])
      .check(z.describe("Default: yours; never more than yours")),
  ),
  envelope: z.optional(
    z.string().check(z.minLength(1), z.maxLength(64), z.describe("Name of an envelope instead; never more than yours")),
  ),
});
const SendInput = z.object({
  target,
  message,
  interrupt: z.optional(z.boolean().check(z.describe("Stop what it does and turn to this at once"))),
});
const WaitInput = z.object({
  targets: z.array(target).check(z.minLength(1), z.maxLength(MAX_TARGETS)),
  timeout_ms: z.optional(z.number().check(z.positive(), z.describe(`Default ${WAIT_MS.usual}`))),
});
const CloseInput = z.object({ target });

export function childTool(name: ChildTool, children: ChildThreads): Tool {
  switch (name) {
    case "spawn_agent":
      return spawnAgent(children);
    case "send_input":
      return sendInput(children);
    case "wait_agent":
      return waitAgent(children);
    case "close_agent":
      return closeAgent(children);
    default:
      return never(name);
  }
}

const common = { effects: ["spawn"], isReadOnly: () => false } as const;

function spawnAgent(children: ChildThreads): Tool {
  return collabTool<z.infer<typeof SpawnInput>>(children.threadId, {
    name: "spawn_agent",
    description:
      "Starts an agent that works on a task beside you, in the same folder, with at most your permissions. Returns its id. It ends with your turn: wait for it.",
    input: SpawnInput,
    deadlineMs: () => START_MS,
    describe: ({ message: prompt, model, reasoning_effort: effort }) => ({
      tool: "start",
      threadIds: [],
      prompt,
      ...(model === undefined ? {} : { model }),
      ...(effort === undefined ? {} : { effort }),
    }),
    async run({ message: prompt, model, reasoning_effort: effort, sandbox: sandboxMode, envelope }, context) {
      const child = await children.start({ prompt, model, effort, sandboxMode, envelope }, context);
      const { threadId, narrowed } = child;
      const answer = { agent_id: threadId, nickname: null, ...(narrowed === undefined ? {} : { narrowed }) };
      return { children: [child], answer };
    },
  });
}

function sendInput(children: ChildThreads): Tool {
  return collabTool<z.infer<typeof SendInput>>(children.threadId, {
    name: "send_input",
    description: "Sends a message to an agent: into what it does now, or as its next task.",
    input: SendInput,
    deadlineMs: () => START_MS,
    describe: ({ target: threadId, message: prompt }) => ({ tool: "send", threadIds: [threadId], prompt }),
    async run({ target: threadId, message: text, interrupt: isUrgent = false }) {
      const { turnId, ...child } = await children.send({ threadId, text, isUrgent });
      return { children: [child], answer: { submission_id: turnId } };
    },
  });
}

function waitAgent(children: ChildThreads): Tool {
  const limitOf = (ms: number = WAIT_MS.usual): number => Math.min(WAIT_MS.most, Math.max(WAIT_MS.least, ms));
  return collabTool<z.infer<typeof WaitInput>>(children.threadId, {
    name: "wait_agent",
    description:
      "Waits until one of the agents is done, and returns the state of those that are, with their last message.",
    input: WaitInput,
    isReadOnly: () => true,
    deadlineMs: ({ timeout_ms: ms }) => limitOf(ms) + START_MS,
    describe: ({ targets }) => ({ tool: "wait", threadIds: [...new Set(targets)] }),
    async run({ targets, timeout_ms: ms }, { signal }) {
      const states = await children.wait([...new Set(targets)], { timeoutMs: limitOf(ms), signal });
      const ended = states.filter(({ status }) => status !== "running" && status !== "starting");
      const status = Object.fromEntries(ended.map((child) => [child.threadId, toldStatus(child)]));
      return { children: states, answer: { status, timed_out: ended.length === 0 } };
    },
  });
}

function closeAgent(children: ChildThreads): Tool {
  return collabTool<z.infer<typeof CloseInput>>(children.threadId, {
    name: "close_agent",
    description: "Ends an agent that is no longer needed. Agents that are done count as open until they are closed.",
    input: CloseInput,
    deadlineMs: () => STOP_MS,
    describe: ({ target: threadId }) => ({ tool: "close", threadIds: [threadId] }),
    async run({ target: threadId }) {
      const before = await children.close(threadId);
      return { children: [{ threadId, status: "closed" }], answer: { previous_status: toldStatus(before) } };
    },
  });
}

interface CollabTool<A>
  extends Pick<Tool<A>, "name" | "description" | "input" | "deadlineMs">, Partial<Pick<Tool<A>, "isReadOnly">> {
  readonly describe: (args: A) => Pick<Item, "tool" | "threadIds"> & Partial<Pick<Item, "prompt" | "model" | "effort">>;
  readonly run: (
    args: A,
    context: ToolContext,
  ) => Promise<{ readonly children: readonly ChildState[]; readonly answer: object }>;
}

function collabTool<A>(senderThreadId: string, { run, describe: describeOwn, ...tool }: CollabTool<A>): Tool<A> {
  const describe = (args: A, { callId, itemId }: CallContext): Item => ({
    type: "collabToolCall",
    id: itemId,
    callId,
    status: "inProgress",
    senderThreadId,
    ...describeOwn(args),
    children: [],
  });
  return jsonTool<A>({
    ...common,
    ...tool,
    describe,
    async run(args, context) {
      const startedAt = performance.now();
      const item = describe(args, context);
      const took = (): number => Math.round(performance.now() - startedAt);
      try {
        const { children, answer } = await run(args, context);
        return succeeded({ ...item, durationMs: took() }, children, answer);
      } catch (error) {
        // Stopped with its turn: dispatch says so.
        context.signal.throwIfAborted();
        return failed({ ...item, durationMs: took() }, toHeddleError(error, "tool.failed"));
      }
    },
  });
}

function succeeded(item: Item, children: readonly ChildState[], answer: object): ToolResult {
  const threadIds = [...new Set([...item.threadIds, ...children.map(({ threadId }) => threadId)])];
  const states = children.map(storedState);
  return {
    isError: false,
    item: { ...item, status: "completed", threadIds, children: states },
    output: told(JSON.stringify(answer)),
  };
}

function failed(item: Item, { code, message: text }: HeddleError): ToolResult {
  const failure = { code, message: text };
  return { isError: true, item: { ...item, status: "failed", error: text }, output: told(text), failure };
}

function storedState({ threadId, status, message: text }: ChildState): ChildState {
  return { threadId, status, ...(text === undefined ? {} : { message: fitText(text, MAX_STORED_BYTES) }) };
}

function told(text: string): InputPart[] {
  return [{ type: "text", text }];
}

/** As Codex tells its models. */
function toldStatus({ status, message: text }: ChildState): string | Readonly<Record<string, string | null>> {
  const said = text === undefined ? undefined : fitText(text, MAX_MESSAGE_BYTES);
  switch (status) {
    case "completed":
      return { completed: said ?? null };
    case "failed":
      return { errored: said ?? "failed" };
    case "starting":
      return "pending_init";
    case "closed":
      return "shutdown";
    case "missing":
      return "not_found";
    case "running":
    case "interrupted":
      return status;
    default:
      return never(status);
  }
}
