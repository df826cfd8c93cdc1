/** What the tools that change one file have in common. */
import type { FileChangeEntry, ItemOf } from "@heddle/protocol";
import { resolve } from "node:path";
import { jsonTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { unifiedDiff } from "../patch/unified-diff.ts";
import type { CallContext, Tool, ToolResult } from "../calls/tool.ts";

type Own<A> = Pick<Tool<A>, "name" | "description" | "input" | "run">;

export function fileTool<A extends { readonly file_path: string }>(tool: Own<A>): Tool<A> {
  return jsonTool<A>({
    effects: ["read", "write"],
    isReadOnly: () => false,
    paths: (args) => [{ path: args.file_path, access: "write" }],
    describe: (args, context) => fileItem(args.file_path, context),
    question: (args, { callId, itemId, cwd }) => ({
      kind: "fileChange",
      callId,
      itemId,
      paths: [absolutePath(args.file_path, cwd)],
    }),
    ...tool,
  });
}

/** Never throws: it also describes calls that are refused. */
function fileItem(path: string, context: CallContext): ItemOf<"fileChange"> {
  const change: FileChangeEntry = { path: resolve(context.cwd, path), kind: "update", diff: "" };
  return { type: "fileChange", id: context.itemId, callId: context.callId, status: "inProgress", changes: [change] };
}

export function fileResult(
  change: { readonly path: string; readonly before: string | undefined; readonly after: string },
  context: CallContext,
  text: string,
): ToolResult {
  const { path, before, after } = change;
  const entry: FileChangeEntry = {
    path,
    kind: before === undefined ? "add" : "update",
    ...unifiedDiff(before ?? "", after),
  };
  return {
    isError: false,
    item: { ...fileItem(path, context), status: "completed", changes: [entry] },
    output: [{ type: "text", text }],
  };
}
