/** The shapes of what an owner does with the work of a task over HTTP. Part of http-shapes.ts, and as strict with requests. */
import { z } from "zod";
import { flag, Folder } from "./http-parts.ts";
import { Task } from "./http-task-shapes.ts";
import { WorkFile } from "../tasks/task-checks.ts";
import { TaskBudget } from "../tasks/task-spec.ts";

export const AcceptTaskBody = z.strictObject({
  note: z.string().max(2000).optional().describe("Stored when it ends without verification"),
});
export const PatchTaskBody = z
  .strictObject({
    name: z.string().trim().min(1).max(200).optional(),
    labels: z
      .array(z.string().trim().min(1).max(100))
      .max(50)
      .optional()
      .describe("All of them, in place of those there are"),
    priority: z.number().int().min(-1_000_000).max(1_000_000).optional().describe("Higher first"),
    budget: TaskBudget.omit({ onReached: true })
      .partial()
      .optional()
      .describe("Whole limits in place of those there are, with what was added to them"),
  })
  .refine((given) => Object.values(given).some((value) => value !== undefined), "nothing is to be changed");
export type PatchTaskInput = z.input<typeof PatchTaskBody>;
export const UndoTaskBody = z.strictObject({
  dryRun: z.boolean().optional().describe("Only reports what would be restored"),
  force: z.boolean().optional().describe("Also what changed after the agent stopped"),
  retry: z.boolean().optional().describe("Starts another attempt from there"),
});
export const UndoneTask = z.object({
  task: Task,
  files: z.array(WorkFile).readonly().describe("The first of them"),
  count: z.number().int(),
  later: z.array(z.string()).readonly().describe("Changed after the work was judged"),
  isDone: z.boolean(),
});

export const TaskDiffQuery = z.strictObject({
  path: Folder.optional().describe("A path or glob of the workspace; everything when absent"),
  stat: flag.optional().describe("true: only names and numbers of lines"),
});
const FileFacts = z.object({
  kind: z.enum(["file", "link", "folder", "other"]),
  mode: z.string(),
  size: z.number().int(),
  sha256: z.string(),
});
export const TaskDiff = z.object({
  taskId: z.string(),
  of: z.enum(["judged", "live"]).describe("As it was frozen and judged, or as the folder is now"),
  folder: z.string(),
  files: z
    .array(
      WorkFile.extend({
        shown: z.string().describe("Its path, with everything but text escaped"),
        standing: z.enum(["delivered", "left-out"]).optional().describe("Whether the verdict covers it"),
        before: FileFacts.optional(),
        now: FileFacts.optional(),
        added: z.number().int().optional(),
        removed: z.number().int().optional(),
        diff: z.string().optional(),
      }),
    )
    .readonly(),
  count: z.number().int(),
  isCut: z.boolean(),
});

const Verdict = z.object({
  verdict: z.enum(["passed", "rejected", "review"]),
  checks: z.array(z.object({ name: z.string(), outcome: z.string(), message: z.string() })).readonly(),
});
export const TaskVerification = z.object({
  outcome: z.enum(["same", "differs", "missing"]).describe("missing: too little is left to judge it again"),
  reasons: z.array(z.string()).readonly(),
  recorded: Verdict.optional(),
  now: Verdict.optional(),
  base: z.string().optional().describe("Hash of the beginning"),
  work: z.string().optional().describe("Hash of the work"),
});

export type AcceptTaskInput = z.input<typeof AcceptTaskBody>;
export type UndoTaskInput = z.input<typeof UndoTaskBody>;
export type UndoneTask = z.output<typeof UndoneTask>;
export type TaskDiffQueryInput = z.input<typeof TaskDiffQuery>;
export type TaskDiff = z.output<typeof TaskDiff>;
export type TaskVerification = z.output<typeof TaskVerification>;
