/**
 * What a batch run leaves for the program that started it: the result file of `heddle exec --result-json` and the last
 * line of its JSON stream. Names are those of the wire, so that what is written is what is described here.
 */
import { z } from "zod";
import { Failure } from "./events/event-parts.ts";

/** `cancelled`: stopped by a signal. A limit, a timeout and a refusal are failures. */
export const RunStatus = z.enum(["completed", "failed", "cancelled"]);
export type RunStatus = z.infer<typeof RunStatus>;

const RunUsage = z.object({
  input_tokens: z.number().int(),
  cached_input_tokens: z.number().int(),
  cache_write_input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  reasoning_output_tokens: z.number().int(),
});

const GitState = z.object({
  head: z.string().nullable().meta({ description: "The commit; null in a repository without one" }),
  branch: z.string().nullable(),
  is_dirty: z.boolean().meta({ description: "Something differs from the commit, new files included" }),
});

const GitReport = z.object({
  before: GitState.nullable(),
  after: GitState.nullable(),
  diffstat: z
    .object({ files: z.number().int(), insertions: z.number().int(), deletions: z.number().int() })
    .nullable()
    .meta({ description: "The files as they are now against the commit the run began with, new files included" }),
  error: z.string().optional().meta({ description: "Why something above is null although there is a repository" }),
});

const Attempt = z.object({
  attempt: z.number().int(),
  mode: z.enum(["first", "restart", "resume"]).meta({
    description:
      "restart: the prompt again, in a new thread; resume: the same thread continues, because something was done",
  }),
  thread_id: z.string(),
  turn_id: z.string(),
  status: RunStatus,
  reason: z.string().optional(),
});

const StructuredResult = z.object({
  status: z.enum(["valid", "invalid"]),
  value: z.unknown().optional(),
  error: z.string().optional(),
  schema_digest: z.string(),
});

export const RunResult = z.object({
  type: z.literal("heddle.run.result"),
  version: z.literal(1),
  heddle_version: z.string(),
  run_id: z.string(),
  status: RunStatus,
  reason: z.string().optional().meta({ description: "The code of the failure; absent exactly when completed" }),
  message: z.string().optional().meta({ description: "The failure as text" }),
  details: Failure.shape.details.meta({ description: "Facts of the failure, such as which limit and by how much" }),
  exit_code: z.number().int(),
  retryable: z.boolean().meta({ description: "The same run may succeed later without any change" }),
  response: z.string().nullable().meta({ description: "The last thing the agent said; null when it said nothing" }),
  is_response_final: z.boolean().meta({ description: "False: the run broke off after it" }),
  started_at: z.string(),
  duration_ms: z.number(),
  num_turns: z.number().int().meta({ description: "Requests to the model in this run" }),
  permission_denials: z.array(
    z.object({ tool: z.string(), call_id: z.string(), code: z.string(), message: z.string() }),
  ),
  notices: z
    .array(z.object({ level: z.enum(["warning", "error"]), code: z.string(), message: z.string() }))
    .meta({ description: "What the caller must know besides the end: input that was not read, a slow start" }),
  thread_id: z.string().nullable(),
  turn_id: z.string().nullable(),
  attempts: z.array(Attempt),
  provider: z.string().nullable(),
  model: z.string().nullable(),
  sandbox: z
    .string()
    .nullable()
    .meta({ description: "Which sandbox back-end ran it; null when the run ended before the sandbox was open" }),
  usage: RunUsage.meta({ description: "Of this run, all its attempts together" }),
  thread_usage: RunUsage.nullable().meta({ description: "Of the thread since it exists" }),
  cost: z.object({ usd: z.number().nullable().meta({ description: "null: at least one price is not known" }) }),
  artifact_root: z.string().nullable().meta({ description: "The folder of this run's artifacts" }),
  paths: z.record(z.string(), z.string()).meta({ description: "Files that were written, by what they hold" }),
  structured_result: StructuredResult.nullable(),
  git: GitReport.nullable().meta({ description: "null: not a repository, or the run ended before it was looked at" }),
  manifest: z.unknown().meta({ description: "What the caller gave with --manifest, as it was; null without one" }),
});
export type RunResult = z.infer<typeof RunResult>;

/** The last line of the JSON stream of a batch run, whatever happened before it. */
export const RunFinished = z.object({
  type: z.literal("heddle.run.finished"),
  status: RunStatus,
  exit_code: z.number().int(),
  run_id: z.string(),
  thread_id: z.string().nullable(),
  reason: z.string().optional(),
  retryable: z.boolean(),
});
export type RunFinished = z.infer<typeof RunFinished>;

/** An attempt failed and another follows it. */
export const RunRetried = z.object({
  type: z.literal("heddle.run.retried"),
  retry: z.number().int(),
  max_retries: z.number().int(),
  mode: Attempt.shape.mode.exclude(["first"]),
  reason: z.string(),
  delay_ms: z.number(),
});
export type RunRetried = z.infer<typeof RunRetried>;

/** JSON Schema 2020-12 of a result file. */
export function runResultSchema(): object {
  const schema = z.toJSONSchema(RunResult, { target: "draft-2020-12", io: "input", reused: "ref" });
  return { $schema: schema.$schema, $id: "heddle-run-result", title: "Result of heddle exec --result-json", ...schema };
}
