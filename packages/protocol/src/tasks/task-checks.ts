/**
 * What decides that a task is done. Every kind is run by one file of `@heddle/tasks`; a check that cannot run has not
 * passed. Paths and globs are relative to the workspace and never lead out of it.
 */
import { z } from "zod";
import { HostRule } from "../envelopes/envelope.ts";
import { Failure } from "../events/event-parts.ts";
import { Usage } from "../threads/model-output.ts";

const text = z.string().min(1);
/** Whether commands reach the network, or the only hosts they reach. */
export const TaskNetwork = z.union([z.boolean(), z.array(HostRule).min(1).max(200)]);
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
const expectation = { equals: value.optional(), matches: text.optional(), exists: z.boolean().optional() };

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
    network: TaskNetwork.default(false),
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
    network: TaskNetwork.default(false),
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
  severalOf("all"),
  severalOf("any"),
  z.strictObject({
    kind: z.literal("not"),
    name,
    get of() {
      return TaskCheck;
    },
  }),
]);

function severalOf<K extends "all" | "any">(kind: K) {
  return z.strictObject({
    kind: z.literal(kind),
    name,
    get of(): z.ZodArray<typeof TaskCheck> {
      return z.array(TaskCheck).min(1);
    },
  });
}

const TestCounts = z.object({ passed: z.number(), failed: z.number(), skipped: z.number() });
const HowChanged = z.enum(["added", "changed", "removed"]);

const PartResult = z.object({
  /** Its name, or a short description. */
  name: z.string(),
  kind: z.string(),
  outcome: z.enum(["passed", "failed", "error"]),
  /** One line for people and for the agent. */
  message: z.string(),
  /** The end of what it printed, for the agent too. */
  output: z.string().optional(),
  /** Of the whole output, or of the file that was checked. */
  sha256: z.string().optional(),
  startedAt: z.number(),
  durationMs: z.number(),
  /** It passed before the task began as well, so its pass says nothing about the work. */
  isVacuous: z.boolean().optional(),
  /** It demands that something stays unchanged, so its pass says nothing about the work either. */
  isGuard: z.literal(true).optional(),
  /** It passed and failed over the same content. */
  isFlaky: z.literal(true).optional(),
  /** Files of the work that it read or ran (or, without `deliver`, could look for), as text, git's own left out; at most MAX_WORK_FILES. */
  restsOn: z.array(z.string()).optional(),
  /** How many they are; absent: `restsOn` names them all. */
  restsOnCount: z.number().int().optional(),
  /** false: this host cannot tell what it read, and `restsOn` is everything in the room. */
  areReadsKnown: z.boolean().optional(),
  /** Of `tests`. */
  tests: TestCounts.optional(),
});

/** What one check found. `error`: it could not run, which is not a pass. */
export const CheckResult = PartResult.extend({
  /** Of `all`, `any` and `not`: every check below it that was run, in order. */
  parts: z.array(PartResult).optional(),
});
export type CheckResult = z.infer<typeof CheckResult>;

/** Something the agent did that no check may excuse: changed protected files, fewer tests. */
export const CheckViolation = z.object({
  kind: z.enum(["protected-changed", "protected-removed", "fewer-tests", "check-changed", "workspace-missing"]),
  path: z.string().optional(),
  message: z.string(),
});
export type CheckViolation = z.infer<typeof CheckViolation>;

/** How many files an event names of each kind; the rest is counted. */
export const MAX_WORK_FILES = 200;

/** Files that earlier tasks left. Each is watched in every room; with more, checks are run again without them. */
export const MAX_LEFT_FILES = 1000;

/** What an owner can accept file by file; for more, use globs in the spec. */
export const MAX_ACCEPTED_FILES = 2000;

/** By the name of the file. It decides nothing by itself. */
export const FileRole = z.enum([
  "source",
  "test",
  "configuration",
  "build",
  "dependency",
  "cache",
  "repository",
  "other",
]);
export type FileRole = z.infer<typeof FileRole>;

/** A file that has changed since the task began. */
export const WorkFile = z.object({
  /** Relative to the workspace, as text. */
  path: z.string(),
  how: HowChanged,
  role: FileRole.optional(),
  /** Of its content, or of where a link leads; absent: it is removed or has none. */
  sha256: z.string().optional(),
  /** Of a link: its target, as text. */
  leadsTo: z.string().optional(),
  /** Why it is not judged, or not as the agent left it, although it could be part of the work. */
  why: z.string().optional(),
});
export type WorkFile = z.infer<typeof WorkFile>;

/** Of another model; it can only add a rejection. `failure`: there was no answer, and the spec decides what `accepts` is then. */
export const SecondOpinion = z.object({
  model: z.string(),
  accepts: z.boolean(),
  reason: z.string(),
  failure: Failure.optional(),
  /** Where it was requested. */
  threadId: z.string().optional(),
  usage: Usage.optional(),
  costUsd: z.number().optional(),
});

/** What was judged: enough to judge it again. */
export const JudgedWork = z.object({
  /** Hashes of the manifests of the baseline and of the frozen work. */
  base: z.string(),
  sha256: z.string(),
  /** How the rooms of the commands were made; absent: no check ran a command. */
  room: z.enum(["overlay", "copy", "none"]).optional(),
  /** What the verdict covers, and what else has changed. At most MAX_WORK_FILES each. */
  delivered: z.array(WorkFile),
  deliveredCount: z.number().int(),
  others: z.array(WorkFile),
  othersCount: z.number().int(),
  /** What the setup made otherwise because of the work, where the spec names it. At most MAX_WORK_FILES. Absent: nothing. */
  made: z.array(z.string()).optional(),
  madeCount: z.number().int().optional(),
  /** The file that the task came from, where the work changed it. */
  spec: z.object({ path: z.string(), sha256: z.string() }).optional(),
});
export type JudgedWork = z.infer<typeof JudgedWork>;

/** Why work that nothing rejects is not verified, and the owner decides. */
export const WorkReview = z.object({
  reasons: z.array(
    z.object({
      /**
       * It rests on files that nothing names as the work; every check was vacuous or a guard; a check is flaky; it rests on
       * what earlier tasks left unjudged; a file that also has a name outside the workspace may have been changed there; its
       * setup changed what judges; a check read through a delivered link to what is not delivered; or it passed, and the
       * state of the workspace or the repository prevents its delivery: `task.resumed` tries again.
       */
      kind: z.enum(["rests", "vacuous", "flaky", "delivery", "left", "beside", "outside", "setup", "link"]),
      message: z.string(),
      /** At most MAX_WORK_FILES. */
      files: z.array(z.string()),
      /** How many they are; absent: `files` names them all. */
      count: z.number().int().optional(),
    }),
  ),
  /** What to write as `deliver:` to have it accepted. Absent: no value would make it verified. */
  deliver: z.array(z.string()).optional(),
});
export type WorkReview = z.infer<typeof WorkReview>;

/** The workspace as it was when the task began: what `changed`, `unchanged` and `noFewer` compare with. */
export const TaskBaseline = z.object({
  takenAt: z.number(),
  /** Its path, without links. */
  folder: z.string(),
  /** The copy in Heddle's home that checks run on. Absent: the task is older than such copies, or has no checks and is too large. */
  kept: z.object({ sha256: z.string(), files: z.number(), bytes: z.number() }).optional(),
  git: z.object({ commit: z.string(), branch: z.string().optional() }).optional(),
  /** By name of the check. */
  tests: z.record(z.string(), TestCounts),
  /** How many checkboxes there were, by name of the check. */
  boxes: z.record(z.string(), z.number()),
  /** Names of the checks that passed already. */
  passed: z.array(z.string()),
  /** What agents of earlier tasks left there, neither judged nor accepted, when this one began. Absent: nothing. */
  left: z
    .object({
      /** At most MAX_LEFT_FILES. */
      files: z.array(
        z.object({
          /** Relative to the workspace, as text. */
          path: z.string(),
          how: HowChanged,
          taskId: z.string(),
          /** Undoing that task reverts nothing that was verified or accepted. */
          isUndoable: z.literal(true).optional(),
          /** It also had a name outside the workspace and was changed there; that change cannot be undone. */
          isOutside: z.literal(true).optional(),
        }),
      ),
      count: z.number().int(),
    })
    .optional(),
});
export type TaskBaseline = z.infer<typeof TaskBaseline>;
