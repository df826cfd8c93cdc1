/** An order that a client names by its path instead of sending it: only a plain file in an inbox. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { MAX_SPEC_BYTES } from "../spec/read-spec.ts";
import { inboxFolder, pathBelow } from "./inbox-folder.ts";
import type { Order } from "./take-order.ts";

/** `folders`: of inboxes. The file stays where it is. */
export async function readOrderFile(
  file: string,
  folders: readonly string[],
): Promise<Pick<Order, "file" | "text" | "path">> {
  for (const folder of folders) {
    const below = await pathIn(folder, file);
    if (below === undefined) continue;
    const read = await inboxFolder(folder).download(below, MAX_SPEC_BYTES);
    if (read !== undefined) return { file: path.basename(file), text: read.bytes, path: file };
  }
  // The same message for a missing file and one outside the inboxes, so that it tells nobody which files exist.
  throw new HeddleError("task.invalid", `there is no order ${file}; send its text, or put it into an inbox`);
}

async function pathIn(folder: string, file: string): Promise<string | undefined> {
  if (!path.isAbsolute(file)) return undefined;
  try {
    return pathBelow(await realpath(folder), path.join(await realpath(path.dirname(file)), path.basename(file)));
  } catch {
    return undefined;
  }
}
