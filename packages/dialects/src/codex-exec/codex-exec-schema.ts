/**
 * The lines of `codex exec --json` as Heddle prints them, defined once: the types of the dialect and the published JSON
 * Schema both come from here. Readers must let unknown keys pass; what Codex has not is marked as Heddle's own.
 */
import { z } from "zod";
import { RunFinished, RunRetried } from "@heddle/protocol/run-result";

const OWN = "Heddle's own: ";
const own = (text: string): { readonly description: string } => ({ description: OWN + text });

const Status = z.enum(["in_progress", "completed", "failed"]);

/** Codex has no word for these; it would say `failed`, and so does `status`. */
const Outcome = z
  .enum(["declined", "interrupted", "unknown"])
  .meta(own("the exact status, when `failed` stands for another one"));

const Details = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

const ErrorText = {
  message: z.string(),
  code: z.string().optional().meta(own("a code that programs can look at")),
  details: Details.optional().meta(own("facts for programs")),
};

const id = z.string().meta({ description: "item_0, item_1, … in the order in which a run first shows them" });

const AgentMessage = z.object({
  id,
  type: z.literal("agent_message"),
  text: z.string(),
  sources: z
    .array(z.object({ url: z.string(), title: z.string().optional() }))
    .optional()
    .meta(own("pages that the provider names for the text")),
  is_partial: z.literal(true).optional().meta(own("the text broke off")),
});

const Reasoning = z.object({ id, type: z.literal("reasoning"), text: z.string() });

const CommandExecution = z.object({
  id,
  type: z.literal("command_execution"),
  command: z.string().meta({ description: "The whole command line, shell included" }),
  aggregated_output: z.string(),
  exit_code: z.number().int().nullable().meta({ description: "-1: it could not be started" }),
  status: z.enum([...Status.options, "declined"]),
  outcome: Outcome.optional(),
  error: z.string().optional().meta(own("why it did not run, or did not end by itself")),
});

const FileChange = z.object({
  id,
  type: z.literal("file_change"),
  changes: z.array(z.object({ path: z.string(), kind: z.enum(["add", "update", "delete"]) })),
  status: Status,
  outcome: Outcome.optional(),
  error: z.string().optional().meta(own("why nothing was changed")),
});

const McpToolCall = z.object({
  id,
  type: z.literal("mcp_tool_call"),
  server: z.string().meta({ description: "heddle for Heddle's own tools" }),
  tool: z.string(),
  arguments: z.unknown(),
  result: z
    .object({
      content: z.array(z.unknown()).meta({ description: "Content blocks of MCP, such as {type: text, text}" }),
      structured_content: z.unknown(),
    })
    .nullable(),
  error: z.object({ message: z.string() }).nullable(),
  status: Status,
  outcome: Outcome.optional(),
});

const CollabToolCall = z.object({
  id,
  type: z.literal("collab_tool_call"),
  tool: z.enum(["spawn_agent", "send_input", "wait", "close_agent"]),
  sender_thread_id: z.string(),
  receiver_thread_ids: z.array(z.string()).meta({ description: "Child threads that the call is about" }),
  prompt: z.string().nullable(),
  agents_states: z.record(
    z.string(),
    z.object({
      status: z.enum(["pending_init", "running", "interrupted", "completed", "errored", "shutdown", "not_found"]),
      message: z.string().nullable(),
    }),
  ),
  status: Status,
  outcome: Outcome.optional(),
  error: z.string().optional().meta(own("why it failed")),
});

const SearchAction = z.object({
  type: z.enum(["search", "open_page", "find_in_page", "other"]),
  query: z.string().optional(),
  queries: z.array(z.string()).optional(),
  url: z.string().optional(),
  pattern: z.string().optional(),
});
export type SearchAction = z.infer<typeof SearchAction>;

const WebSearchItem = z.object({ id, type: z.literal("web_search"), query: z.string(), action: SearchAction });

const TodoList = z.object({
  id,
  type: z.literal("todo_list"),
  items: z.array(z.object({ text: z.string(), completed: z.boolean() })),
});

const ErrorItem = z.object({
  id,
  type: z.literal("error"),
  message: z.string(),
  code: z.string().optional().meta(own("a code that programs can look at")),
});

export const CodexItem = z.discriminatedUnion("type", [
  AgentMessage,
  Reasoning,
  CommandExecution,
  FileChange,
  McpToolCall,
  CollabToolCall,
  TodoList,
  WebSearchItem,
  ErrorItem,
]);
export type CodexItem = z.infer<typeof CodexItem>;

export const CodexUsage = z.object({
  input_tokens: z.number().int(),
  cached_input_tokens: z.number().int(),
  cache_write_input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  reasoning_output_tokens: z.number().int(),
});
export type CodexUsage = z.infer<typeof CodexUsage>;

const Figures = {
  usage: CodexUsage.meta({ description: "What this turn used" }),
  thread_usage: CodexUsage.optional().meta(own("what all turns of the thread used, this one included")),
  cost_usd: z.number().nullable().meta(own("null when the price of a model that took part is not known")),
  duration_ms: z.number().meta(own("how long the turn took")),
};

export const CodexExecLine = z.discriminatedUnion("type", [
  z.object({ type: z.literal("thread.started"), thread_id: z.string() }),
  z.object({
    type: z.literal("turn.started"),
    turn_id: z.string().meta(own("the turn's id in the record")),
    sandbox: z.string().meta(own("the sandbox back-end: namespaces, bwrap, seatbelt or none")),
  }),
  z.object({ type: z.literal("item.started"), item: CodexItem }),
  z
    .object({ type: z.literal("item.updated"), item: CodexItem })
    .meta({ description: "The item as it is now; for text and output only with --deltas" }),
  z.object({ type: z.literal("item.completed"), item: CodexItem }),
  z.object({ type: z.literal("turn.completed"), ...Figures }),
  z.object({
    type: z.literal("turn.failed"),
    error: z.object(ErrorText),
    status: z.enum(["failed", "interrupted"]).optional().meta(own("whether it failed or was stopped")),
    ...z.object(Figures).partial().shape,
    usage: CodexUsage.optional().meta(own("what the turn used until then")),
  }),
  z
    .object({ type: z.literal("error"), ...ErrorText })
    .meta({ description: "A failure; one that begins with Reconnecting... is tried again" }),
  z
    .object({
      type: z.literal("heddle.retry"),
      ...ErrorText,
      attempt: z.number().int().meta({ description: "Requests so far" }),
      max_attempts: z.number().int().meta({ description: "How many there can be" }),
      delay_ms: z.number(),
    })
    .meta(own("a request had no answer and is sent again; Codex does not report this")),
]);
export type CodexExecLine = z.infer<typeof CodexExecLine>;

/** The line without what Codex has not; undefined when it is Heddle's own altogether. */
export function onlyCodexFields(line: CodexExecLine): unknown {
  const schema = optionFor(CodexExecLine, line);
  return schema === undefined || isOwn(schema) ? undefined : stripped(schema, line);
}

function stripped(schema: z.core.$ZodType, value: unknown): unknown {
  if (schema instanceof z.ZodDiscriminatedUnion) return stripped(optionFor(schema, value) ?? z.unknown(), value);
  if (!(schema instanceof z.ZodObject) || typeof value !== "object" || value === null) return value;
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      const field = shape[key];
      return field === undefined || isOwn(field) ? [] : [[key, stripped(field, inner)]];
    }),
  );
}

function optionFor(union: z.ZodDiscriminatedUnion, value: unknown): z.core.$ZodType | undefined {
  return union.options.find((option) => z.safeParse(option, value).success);
}

function isOwn(schema: z.core.$ZodType): boolean {
  if (z.globalRegistry.get(schema)?.description?.startsWith(OWN) === true) return true;
  return schema instanceof z.ZodOptional && isOwn(schema.unwrap());
}

/** JSON Schema 2020-12 of one line of the stream, those that only a batch run prints included. */
export function codexExecSchema(): object {
  const line = z.discriminatedUnion("type", [...CodexExecLine.options, RunRetried, RunFinished]);
  const schema = z.toJSONSchema(line, {
    target: "draft-2020-12",
    io: "input",
    // One definition of an item instead of three.
    reused: "ref",
  });
  return {
    $schema: schema.$schema,
    $id: "heddle-exec-events",
    title: "One line of heddle exec --json",
    ...schema,
  };
}
