/** Reads a small file of another program. It can neither block nor flood the reader. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { errorCodeOf, HeddleError, reasonOf } from "@heddle/protocol";

const MAX_BYTES = 256 * 1024;

/** undefined when there is none. */
export async function readSmallFile(file: string): Promise<string | undefined> {
  let handle;
  try {
    // A fifo must not block.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HeddleError("auth.missing", `${file} cannot be read: ${reasonOf(error)}`);
  }
  await using _open = handle;
  const facts = await handle.stat();
  if (!facts.isFile()) throw new HeddleError("auth.missing", `${file} is not a regular file`);
  if (facts.size > MAX_BYTES) throw new HeddleError("auth.missing", `${file} is too large for a file of credentials`);
  return await handle.readFile("utf8");
}
