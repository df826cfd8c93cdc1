/**
 * What decides that a task is done. Every kind is carried out by one file of `@heddle/tasks`; a check that cannot be
 * carried out has not passed. Paths and globs are relative to the workspace and never lead out of it.
 */
import { z } from "zod";

const text = z.string().min(1);
const name = text.optional();
const path = text;
const globs = z.array(text).min(1);
const count = z.number().int().nonnegative();
const timeoutMs = z.number().int().positive().max(3_600_000).default(600_000);
/** One program with its arguments, or a line for the shell. */
const run = z.union([text, z.array(text).min(1)]);
/** Where in a document: `a.b[0].c`; the whole document when absent. */
const at = z.string().optional();
const value = z.json();

/** Exactly one of the three. */
const expectation = {
  equals: value.optional(),
  matches: text.optional(),
  exists: z.boolean().optional(),
} as const;

const leaf = [
  z.strictObject({ kind: z.literal("file-exists"), name, path, notEmpty: z.boolean().default(false) }),
  z.strictObject({ kind: z.literal("file-absent"), name, path }),
  z.strictObject({ kind: z.literal("glob-count"), name, glob: text, min: count.default(1), max: count.optional() }),
  z.strictObject({ kind: z.literal("contains"), name, path, text }),
  z.strictObject({ kind: z.literal("matches"), name, path, regex: text, flags: z.string().default("m") }),
  z.strictObject({ kind: z.literal("json"), name, path, at, ...expectation }),
  z.strictObject({ kind: z.literal("yaml"), name, path, at, ...expectation }),
  /** Every glob has at least one file that is not as it was when the task began. */
  z.strictObject({ kind: z.literal("changed"), name, paths: globs }),
  z.strictObject({ kind: z.literal("unchanged"), name, paths: globs }),
  z.strictObject({
    kind: z.literal("command"),
    name,
    run,
    cwd: text.default("."),
    timeoutMs,
    exit: count.max(255).default(0),
    /** In standard output and error together. */
    contains: text.optional(),
    matches: text.optional(),
    network: z.boolean().default(false),
  }),
  z.strictObject({
    kind: z.literal("git"),
    name,
    /** Nothing uncommitted. */
    clean: z.boolean().optional(),
    /** A new commit since the task began whose message matches; "" = any. */
    commit: z.string().optional(),
    branch: text.optional(),
    /** What differs from the start, committed or not, lies within these globs. */
    only: globs.optional(),
  }),
  z.strictObject({
    kind: z.literal("tests"),
    name,
    run,
    cwd: text.default("."),
    timeoutMs,
    /** `auto`: by what the output or the report looks like. */
    format: z.enum(["auto", "junit", "tap", "counts"]).default("auto"),
    /** The report the run writes; what it prints when absent. */
    report: text.optional(),
    min: count.default(1),
    /** Against the count taken when the task began. */
    noFewer: z.boolean().default(true),
    maxSkipped: count.optional(),
    network: z.boolean().default(false),
  }),
  /** Every `- [ ]` of these files is `- [x]`, and there is at least one. `change`: of that OpenSpec change. */
  z.strictObject({ kind: z.literal("checkboxes"), name, paths: globs.optional(), change: text.optional() }),
  z.strictObject({
    kind: z.literal("http"),
    name,
    url: z.url({ protocol: /^https?$/ }),
    method: z.enum(["GET", "HEAD"]).default("GET"),
    status: z.number().int().min(100).max(599).default(200),
    contains: text.optional(),
    timeoutMs: z.number().int().positive().max(60_000).default(10_000),
  }),
  /** The file is JSON or YAML that a JSON Schema accepts: a file of the workspace, or in place. */
  z.strictObject({ kind: z.literal("schema"), name, path, schema: z.union([text, z.record(z.string(), z.json())]) }),
] as const;

export const LeafCheck = z.discriminatedUnion("kind", leaf);
export type LeafCheck = z.infer<typeof LeafCheck>;
export type LeafCheckOf<K extends LeafCheck["kind"]> = Extract<LeafCheck, { kind: K }>;

export type TaskCheck =
  | LeafCheck
  | { readonly kind: "all" | "any"; readonly name?: string | undefined; readonly of: readonly TaskCheck[] }
  | { readonly kind: "not"; readonly name?: string | undefined; readonly of: TaskCheck };

type TaskCheckInput =
  | z.input<typeof LeafCheck>
  | { kind: "all" | "any"; name?: string | undefined; of: readonly TaskCheckInput[] }
  | { kind: "not"; name?: string | undefined; of: TaskCheckInput };

export const TaskCheck: z.ZodType<TaskCheck, TaskCheckInput> = z.discriminatedUnion("kind", [
  ...leaf,
  z.strictObject({
    kind: z.literal("all"),
    name,
    get of() {
      return z.array(TaskCheck).min(1);
    },
  }),
  z.strictObject({
    kind: z.literal("any"),
    name,
    get of() {
      return z.array(TaskCheck).min(1);
    },
  }),
  z.strictObject({
    kind: z.literal("not"),
    name,
    get of() {
      return TaskCheck;
    },
  }),
]);

const PartResult = z.object({
  /** Its name, or what it says in a few words. */
  name: z.string(),
  kind: z.string(),
  outcome: z.enum(["passed", "failed", "error"]),
  /** One line for people and for the agent. */
  message: z.string(),
  /** End of what it printed; the agent is told it. */
  output: z.string().optional(),
  /** Of the whole output, or of the file that was looked at. */
  sha256: z.string().optional(),
  startedAt: z.number(),
  durationMs: z.number(),
  /** It passed before the task began as well, so its pass says nothing about the work. */
  isVacuous: z.boolean().optional(),
  /** Of `tests`. */
  tests: z.object({ passed: z.number(), failed: z.number(), skipped: z.number() }).optional(),
});

/** What one check found. `error`: it could not be carried out, which is no pass. */
export const CheckResult = PartResult.extend({
  /** Of `all`, `any` and `not`: every check below it that was run, in order. */
  parts: z.array(PartResult).optional(),
});
export type CheckResult = z.infer<typeof CheckResult>;

/** Something the agent did that checks must not be judged over: protected files it changed, fewer tests. */
export const CheckViolation = z.object({
  kind: z.enum(["protected-changed", "protected-removed", "fewer-tests", "check-changed", "workspace-missing"]),
  path: z.string().optional(),
  message: z.string(),
});
export type CheckViolation = z.infer<typeof CheckViolation>;

/** The workspace as it was when the task began: what `changed`, `unchanged`, `noFewer` and the protected files compare with. */
export const TaskBaseline = z.object({
  takenAt: z.number(),
  /** Where it was, without links. */
  folder: z.string(),
  /** Relative path → sha256, of the files that checks and protections name. A link has the hash of where it points, "" is not there. */
  files: z.record(z.string(), z.string()),
  /** Those of them that the agent must leave as they are. */
  protected: z.array(z.string()),
  /** package.json → sha256 of what its scripts say, apart from the rest of the file; of those that check commands run. */
  scripts: z.record(z.string(), z.string()),
  /** More files matched than are kept; what the rest were cannot be told, and checks that need it are errors. */
  isTruncated: z.boolean(),
  git: z
    .object({
      commit: z.string(),
      branch: z.string().optional(),
      /** What differed from the commit already, where a check asks what the task changed. */
      uncommitted: z.array(z.string()).optional(),
    })
    .optional(),
  /** By name of the check. */
  tests: z.record(z.string(), z.object({ passed: z.number(), failed: z.number(), skipped: z.number() })),
  /** How many checkboxes there were, by name of the check. */
  boxes: z.record(z.string(), z.number()),
  /** Names of the checks that passed already. */
  passed: z.array(z.string()),
  /** Of all files together. Only where every check passed already: then the work must at least have changed something. */
  tree: z.string().optional(),
});
export type TaskBaseline = z.infer<typeof TaskBaseline>;
