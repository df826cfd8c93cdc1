/** The shapes of tasks that are made over HTTP: written, proposed, looked at before they are added. Part of http-shapes.ts. */
import { z } from "zod";
import { CheckResult } from "../tasks/task-checks.ts";
import { TaskSpec } from "../tasks/task-spec.ts";
import { Folder, Id } from "./http-parts.ts";
import { Task } from "./http-task-shapes.ts";

const Authored = z.record(z.string(), z.unknown());
const Written = z.strictObject({
  spec: z
    .union([z.string().min(1), Authored])
    .optional()
    .describe("A task as in a file, as text or as JSON"),
  format: z.enum(["yaml", "markdown"]).optional().describe("Of a spec that is text; yaml when absent"),
  prompt: z.string().min(1).optional().describe("Only a goal"),
  plan: Authored.optional().describe("What /api/tasks/plan proposed, as it was or edited"),
  workspace: Folder.optional().describe("Where the spec names none; the server's own folder when absent"),
  thread: Id.optional().describe("The thread to continue, where the spec names none"),
});
type Written = Readonly<z.infer<typeof Written>>;
const isOne = ({ spec, prompt, plan }: Written): boolean =>
  [spec, prompt, plan].filter((one) => one !== undefined).length === 1;
const ONE = "give exactly one of spec, prompt and plan";
export const CreateTaskBody = Written.extend({
  clientId: Id.optional().describe("Repeat a request with the same id and it is the same task"),
}).refine(isOne, ONE);
export const LintTaskBody = Written.extend({
  run: z.boolean().optional().describe("Runs its checks on a copy of the workspace as it is now"),
}).refine(isOne, ONE);
export const LintAnswer = z.object({
  isValid: z.boolean(),
  problems: z.array(
    z.object({
      message: z.string(),
      key: z.string().describe("As written, with the keys above it: checks[0].kind; empty: the whole"),
      line: z.number().int().optional().describe("Of a spec that is text"),
      column: z.number().int().optional(),
    }),
  ),
  warnings: z.array(z.string()),
  spec: TaskSpec.optional().describe("As it would be stored, with every default; absent: it is not valid"),
  results: z.array(CheckResult).optional().describe("Of a run: a check that passes now would pass without any work"),
  proposes: z
    .object({ deliver: z.array(z.string()) })
    .optional()
    .describe("Of a spec that does not say what it delivers"),
});
export const CreatedTask = Task.extend({
  warnings: z.array(z.string()).readonly(),
  replaces: z.array(z.string()).readonly().describe("Tasks of the same thread that it stopped"),
});
export const PlanTaskBody = z.strictObject({
  prompt: z.string().min(1).max(100_000),
  workspace: Folder.optional(),
  provider: Id.optional(),
  model: Id.optional(),
});
export const PlanAnswer = z.object({
  plan: z.record(z.string(), z.unknown()).describe("For `plan` of POST /api/tasks"),
  text: z.string().describe("The same as a file: YAML"),
  warnings: z.array(z.string()).readonly(),
  threadId: z.string().describe("Where it was requested; its usage is counted there"),
});

export type CreatedTask = z.output<typeof CreatedTask>;
export type LintAnswer = z.output<typeof LintAnswer>;
export type PlanAnswer = z.output<typeof PlanAnswer>;
export type LintTaskInput = z.input<typeof LintTaskBody>;
export type CreateTaskInput = z.input<typeof CreateTaskBody>;
export type PlanTaskInput = z.input<typeof PlanTaskBody>;
