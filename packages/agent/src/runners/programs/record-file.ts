/** A file of the record of an agent program, opened read only. What lies there is whatever agents have written. */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";

/** undefined: it is no file, or a link leads to it. */
export async function openRecordFile(file: string) {
  // An agent may have put a link in the place of a folder since.
  if ((await realpath(file).catch(() => undefined)) !== file) return undefined;
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined || (await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
}
