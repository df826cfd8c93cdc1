/** What an agent's edits changed, folded by file from the items of its thread. */
import type { Journal } from "@heddle/journal";
import type { FileChangeEntry } from "@heddle/protocol";
import type { ThreadDiff } from "@heddle/protocol/http";
import type { z } from "zod";
import { eventsAfter } from "./views.ts";

type Diff = z.output<typeof ThreadDiff>;
type File = Diff["files"][number];

const MAX_FILES = 2_000;
const MAX_CHARS = 8_000_000;
/** Of all files together; what is edited more often is shown by its newest edits on the page of its steps. */
const MAX_EDITS = 20_000;

export async function threadDiff(
  journal: Journal,
  threadId: string,
  { turnId, maxEdits = MAX_EDITS }: { readonly turnId: string | undefined; readonly maxEdits?: number },
): Promise<Diff> {
  const files = new Map<string, File>();
  const paths = new Set<string>();
  let left = MAX_CHARS;
  let editsLeft = maxEdits;
  let isCut = false;
  const turn = turnId === undefined ? undefined : await journal.threads.turn(turnId);
  const after = (turn?.admittedVersion ?? 1) - 1;
  for await (const { body, version } of eventsAfter(journal, threadId, after, ["item.completed"])) {
    if (version > (turn?.endedVersion ?? Infinity)) break;
    if (body.type !== "item.completed" || (turnId ?? body.turnId) !== body.turnId) continue;
    const { item } = body;
    if (item.type !== "fileChange" || item.status !== "completed") continue;
    for (const change of item.changes) {
      paths.add(change.path);
      if ((!files.has(change.path) && files.size >= MAX_FILES) || editsLeft === 0) {
        isCut = true;
        continue;
      }
      editsLeft -= 1;
      const isShown = change.diff.length <= left;
      if (isShown) left -= change.diff.length;
      else isCut = true;
      const edit = { itemId: item.id, turnId: body.turnId, seq: version, diff: isShown ? change.diff : "" };
      files.set(change.path, withEdit(files.get(change.path), change, edit));
    }
  }
  return { of: "recorded", files: [...files.values()], count: paths.size, isCut };
}

function withEdit(before: File | undefined, change: FileChangeEntry, edit: File["edits"][number]): File {
  const { path, kind, movedTo, diff, diffTruncatedBytes = 0 } = change;
  const lines = diff.split("\n");
  const count = (sign: string): number =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length;
  const truncated = (before?.diffTruncatedBytes ?? 0) + diffTruncatedBytes;
  const moved = movedTo ?? before?.movedTo;
  // The same list: a copy for every edit would take quadratic time.
  const edits = before?.edits ?? [];
  edits.push(edit);
  return {
    path,
    // What was added here is new, however often it was edited since.
    kind: before?.kind === "add" && kind === "update" ? "add" : kind,
    ...(moved === undefined ? {} : { movedTo: moved }),
    added: (before?.added ?? 0) + count("+"),
    removed: (before?.removed ?? 0) + count("-"),
    edits,
    ...(truncated === 0 ? {} : { diffTruncatedBytes: truncated }),
  };
}
