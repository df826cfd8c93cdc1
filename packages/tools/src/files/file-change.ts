/** What the file tools that change one file have in common: their item, their question and their result. */
import type { ApprovalQuestion, FileChangeEntry, ItemOf } from "@heddle/protocol";
import { resolve } from "node:path";
import { absolutePath } from "../calls/call-path.ts";
import { unifiedDiff } from "../patch/unified-diff.ts";
import type { CallPlace, ToolResult } from "../calls/tool.ts";

/** Nothing throws here: it also describes calls that are refused. */
export function fileItem(path: string, place: CallPlace): ItemOf<"fileChange"> {
  const change: FileChangeEntry = { path: resolve(place.cwd, path), kind: "update", diff: "" };
  return { type: "fileChange", id: place.itemId, callId: place.callId, status: "inProgress", changes: [change] };
}

export function fileQuestion(path: string, place: CallPlace): ApprovalQuestion {
  const { callId, itemId } = place;
  return { kind: "fileChange", callId, itemId, paths: [absolutePath(path, place.cwd)] };
}

export function fileResult(
  change: { readonly path: string; readonly before: string | undefined; readonly after: string },
  place: CallPlace,
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
    item: { ...fileItem(path, place), status: "completed", changes: [entry] },
    output: [{ type: "text", text }],
  };
}
