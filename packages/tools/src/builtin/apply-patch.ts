/** `apply_patch`: changes files by a patch text. The lines of every chunk are found before the first write, so a patch that does not fit changes nothing. */
import { createHash } from "node:crypto";
import { relative, resolve } from "node:path";
import { toHeddleError, type FileChangeEntry, type ItemOf } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { absolutePath } from "../calls/call-path.ts";
import { parsePatch, type PatchOperation } from "../patch/parse.ts";
import { planPatch, type PatchPlan, type PlannedStep } from "../patch/plan.ts";
import { capDiff, unifiedDiff } from "../patch/unified-diff.ts";
import { removeFileInside, writeFileInside } from "../files/paths.ts";
import { readTextFile } from "../files/text-file.ts";
import type { CallContext, PathUse, Tool, ToolContext } from "../calls/tool.ts";
import { z } from "./schema.ts";

interface Input {
  readonly operations: readonly PatchOperation[];
  /** Where its relative paths start, one inside the other; empty: the working folder. */
  readonly folders: readonly string[];
}

const Input = z.pipe(
  z.union([
    z.pipe(
      z.string(),
      z.transform((patch: string) => ({ patch, folders: [] as string[] })),
    ),
    z.object({ patch: z.string(), folders: z.array(z.string()) }),
  ]),
  z.transform(({ patch, folders }: { patch: string; folders: string[] }, context): Input => {
    try {
      return { operations: parsePatch(patch), folders };
    } catch (error) {
      context.issues.push({ code: "custom", message: toHeddleError(error).message, input: patch });
      return z.NEVER;
    }
  }),
);

export const applyPatch: Tool<Input> = {
  name: "apply_patch",
  description: `Edits files. The input is a patch:
*** Begin Patch
*** Add File: path
+line
*** Delete File: path
*** Update File: path
*** Move to: new path (optional)
@@ line that comes before, such as a function head (optional)
 context
-old line
+new line
*** End Patch
Give about 3 lines of context around a change.`,
  shape: "freeform",
  input: Input,
  effects: ["read", "write"],
  isReadOnly: () => false,
  deadlineMs: () => 60_000,
  paths: (args, context) => pathsOf(args, startFolder(args, context)),
  describe: (args, context) => patchItem(args, context),
  question: (args, context) => ({
    kind: "fileChange",
    callId: context.callId,
    itemId: context.itemId,
    paths: pathsOf(args, startFolder(args, context)).map(({ path }) => path),
  }),
  async run(args, context) {
    const folder = startFolder(args, context);
    const plan = await planPatch(args.operations, {
      absolute: (path) => absolutePath(path, folder),
      readText: async (path) => (await readTextFile(path, context))?.text,
    });
    const done = await carryOut(plan, context);
    const changes = plan.changes.filter(({ path, movedTo }) => done.paths.has(movedTo ?? path));
    const item: ItemOf<"fileChange"> = { ...patchItem(args, context), status: "completed", changes };
    const list = changes.map((change) => summaryLine(change, context.cwd)).join("\n");
    if (done.error === undefined) {
      return {
        isError: false,
        item,
        output: [{ type: "text", text: `Success. Updated the following files:\n${list}` }],
      };
    }
    const { code, message } = toHeddleError(done.error, "tool.failed");
    const written = changes.length === 0 ? "No file was changed." : `Already changed before that:\n${list}`;
    return {
      isError: true,
      item: { ...item, status: "failed", error: message },
      output: [{ type: "text", text: `The patch stopped: ${message}\n${written}` }],
      failure: { code, message },
    };
  },
};

/** Carries out the steps in order; what was done before a failure stays and is reported. */
async function carryOut(plan: PatchPlan, context: ToolContext): Promise<{ paths: Set<string>; error?: unknown }> {
  const paths = new Set<string>();
  try {
    context.signal.throwIfAborted();
    const sizes = plan.steps.map((step) => ("content" in step ? Buffer.byteLength(step.content) : 0));
    context.onWrite(sizes.reduce((sum, size) => sum + size, 0));
    failpoint("patch.before-write");
    for (const step of plan.steps) {
      if (paths.size > 0) failpoint("patch.between-files");
      await carryOutStep(step, context);
      paths.add(step.path);
    }
    return { paths };
  } catch (error) {
    return { paths, error };
  }
}

async function carryOutStep(step: PlannedStep, { envelope }: ToolContext): Promise<void> {
  switch (step.kind) {
    case "create":
      await writeFileInside(step.path, step.content, envelope, { createParents: true, mustNotExist: true });
      return;
    case "replace": {
      const expectedHash = createHash("sha256").update(step.before).digest("hex");
      await writeFileInside(step.path, step.content, envelope, { createParents: false, expectedHash });
      return;
    }
    case "remove":
      await removeFileInside(step.path, envelope);
  }
}

function startFolder(args: Input, context: CallContext): string {
  return args.folders.reduce((folder, next) => absolutePath(next, folder), context.cwd);
}

function pathsOf(args: Input, folder: string): PathUse[] {
  return args.operations.flatMap((operation) => {
    const named = [
      operation.path,
      ...(operation.kind === "update" && operation.moveTo !== undefined ? [operation.moveTo] : []),
    ];
    return named.map((path): PathUse => ({ path: absolutePath(path, folder), access: "write" }));
  });
}

/** From the patch alone, for a call that has not run: nothing is read and nothing throws. */
function patchItem(args: Input, context: CallContext): ItemOf<"fileChange"> {
  const folder = resolve(context.cwd, ...args.folders);
  const changes = args.operations.map((operation): FileChangeEntry => {
    const path = resolve(folder, operation.path);
    switch (operation.kind) {
      case "add":
        return { path, kind: "add", ...unifiedDiff("", operation.content) };
      case "delete":
        return { path, kind: "delete", diff: "" };
      case "update":
        return {
          path,
          kind: "update",
          ...(operation.moveTo === undefined ? {} : { movedTo: resolve(folder, operation.moveTo) }),
          ...capDiff(operation.chunks.map((chunk) => chunkText(chunk.oldLines, chunk.newLines)).join("")),
        };
    }
  });
  return { type: "fileChange", id: context.itemId, callId: context.callId, status: "inProgress", changes };
}

function chunkText(oldLines: readonly string[], newLines: readonly string[]): string {
  const end = (lines: readonly string[]): string => (lines.length === 0 ? "" : `${lines.join("\n")}\n`);
  return unifiedDiff(end(oldLines), end(newLines)).diff;
}

function summaryLine(change: FileChangeEntry, cwd: string): string {
  const letter = { add: "A", update: "M", delete: "D" }[change.kind];
  const name = relative(cwd, change.path) || change.path;
  return change.movedTo === undefined ? `${letter} ${name}` : `${letter} ${name} -> ${relative(cwd, change.movedTo)}`;
}
