/** `--html`: a run as one file that anybody can read: drawn by the components of the dashboard, from what is stored. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import type { Journal } from "@heddle/journal";
import { defined, EXIT, HeddleError, visibleLine, type TaskRecord } from "@heddle/protocol";
import type { StoredRun, TaskDiff } from "@heddle/protocol/http";
import { heddleHome } from "@heddle/runtime/config";
import { storedRun } from "@heddle/server/stored-run";
import { verdictOf, verifyRecord } from "@heddle/tasks/verification";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { runPageFile } from "../page-folder.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { documentOf, type StillPage } from "./document.ts";

export interface RunPageRequest {
  readonly journal: Journal;
  readonly task: TaskRecord | undefined;
  readonly threadId: string | undefined;
  /** Where its agents may write: no link of theirs is followed there. */
  readonly roots: readonly string[];
  readonly diff?: () => Promise<TaskDiff>;
  readonly signal: AbortSignal;
}

/** A mail takes it, and so does a pull request. */
const MAX_BYTES = 10_000_000;
const MAX_DIFF_LINES = 20_000;
/** Texts of the same length come to pages of different ones; less of them is tried until the page is small enough. */
const SHARES = [1, 0.3, 0.1, 0.02] as const;

export async function writeRunPage(
  request: RunPageRequest,
  args: ParsedArgs,
  context: CommandContext,
  out: Output,
): Promise<number> {
  const file = args.value("output");
  if (args.has("json") && file === undefined) throw usage("--json says what was written: name a file too, -o run.html");
  const render = loadRenderer();
  const verdict = await verified(request, context);
  const diff = await request.diff?.().catch((error: unknown) => {
    // Before a task has begun, or when its folder is gone, the recorded edits are shown.
    if (error instanceof HeddleError && error.code !== "internal") return undefined;
    throw error;
  });
  request.signal.throwIfAborted();
  const { run, html, policy } = await drawn({ ...request, diff, verdict, version: context.version }, render);
  if (file === undefined) {
    await out.write(html);
    return EXIT.ok;
  }
  const { holdOutputFile } = await import("../output-file.ts");
  using held = await holdOutputFile(["-o", file], context, { roots: request.roots, mode: 0o600 });
  await held.write(html);
  const bytes = Buffer.byteLength(html);
  const { task, thread, leftOut, items } = run;
  const written = {
    file: held.path,
    bytes,
    ...defined({ taskId: task?.id, threadId: thread?.id, state: task?.state }),
    steps: items.length,
    leftOut,
    streams: run.streams,
    verdict: run.verdict?.result ?? "notVerified",
    policy,
  };
  const text = `${visibleLine(file)} is written, ${bytes} bytes: ${items.length} steps${cutText(leftOut)}. A browser opens it without a server\n`;
  await out.write(args.has("json") ? toLine(written) : text);
  return EXIT.ok;
}

interface Drawing extends RunPageRequest {
  readonly version: string;
  readonly verdict: StoredRun["verdict"];
}

async function drawn(
  { journal, task, threadId, diff, verdict, version }: Omit<Drawing, "diff"> & { readonly diff: TaskDiff | undefined },
  render: Renderer,
): Promise<{ readonly run: StoredRun; readonly html: string; readonly policy: string }> {
  for (const share of SHARES) {
    const run = await storedRun(journal, { task, threadId, diff, verdict, version, share });
    const { html, policy } = documentOf(render(run, { maxDiffLines: MAX_DIFF_LINES * share }));
    if (Buffer.byteLength(html) <= MAX_BYTES) return { run, html, policy };
  }
  const id = task?.id ?? threadId ?? "";
  throw new HeddleError(
    "usage.invalid",
    `${id} cannot be drawn in ${MAX_BYTES / 1e6} MB; all of it as lines: heddle threads export ID`,
  );
}

function cutText({ steps, bytes }: StoredRun["leftOut"]): string {
  const parts = [
    ...(steps === 0 ? [] : [`${steps} earlier ones left out`]),
    ...(bytes === 0 ? [] : [`${bytes} bytes of outputs left out`]),
  ];
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

/** As `heddle verify` says it, now; a run that still goes on cannot be verified, and that is said. */
async function verified(
  { journal, task, threadId, signal }: RunPageRequest,
  { env }: CommandContext,
): Promise<StoredRun["verdict"]> {
  const [at, upTo] = [Date.now(), await journal.position()];
  const selector = task?.id ?? threadId;
  const found = await verifyRecord(journal, { home: heddleHome(env), selector, level: undefined, signal }).catch(
    verdictOf,
  );
  return { result: found.result, at, upTo, ...defined({ reason: found.reason }) };
}

type Renderer = (run: StoredRun, options: { readonly maxDiffLines: number }) => StillPage;

/** Built beside the dashboard, and loaded by nothing but this. */
function loadRenderer(): Renderer {
  const file = runPageFile();
  if (!existsSync(file)) {
    throw new HeddleError(
      "usage.invalid",
      "the page is not built; in the folder of Heddle's source run: npm run build",
    );
  }
  const loaded: unknown = createRequire(import.meta.url)(file);
  if (!isRenderer(loaded)) throw new HeddleError("internal", `${file} draws nothing`);
  return loaded.renderRun;
}

function isRenderer(loaded: unknown): loaded is { readonly renderRun: Renderer } {
  return typeof loaded === "object" && loaded !== null && typeof Reflect.get(loaded, "renderRun") === "function";
}
