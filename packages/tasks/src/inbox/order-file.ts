/** An order that a client names by its path instead of sending it: only where orders lie, and only a plain file. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { MAX_SPEC_BYTES } from "../spec/read-spec.ts";
import { fsConnector } from "./fs-connector.ts";
import type { Order } from "./take-order.ts";

/** `folders`: of inboxes. It stays where it is. */
export async function readOrderFile(
  file: string,
  folders: readonly string[],
): Promise<Pick<Order, "file" | "text" | "path">> {
  for (const folder of folders) {
    const below = await pathBelow(file, folder);
    if (below === undefined) continue;
    const read = await fsConnector(folder).download(below, { maxBytes: MAX_SPEC_BYTES });
    if (read !== undefined) return { file: path.basename(file), text: read.bytes, path: file };
  }
  // The same answer for what is not there and what is not shown: nobody learns which files exist.
  throw new HeddleError("task.invalid", `there is no order ${file}; send its text, or put it into an inbox`);
}

/** By where it really is. */
async function pathBelow(file: string, folder: string): Promise<string | undefined> {
  try {
    const between = path.relative(
      await realpath(folder),
      path.join(await realpath(path.dirname(file)), path.basename(file)),
    );
    const isBelow =
      between !== "" && between !== ".." && !between.startsWith(`..${path.sep}`) && !path.isAbsolute(between);
    return isBelow && path.isAbsolute(file) ? between.split(path.sep).join("/") : undefined;
  } catch {
    return undefined;
  }
}
