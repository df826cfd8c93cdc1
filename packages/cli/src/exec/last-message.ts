/** The file of `-o`: written in any case, and whole or not at all, for the text of an earlier run must not pass for this one's. */
import { lstat, rename, rm, writeFile } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";

export async function writeLastMessage(file: string, text: string): Promise<void> {
  try {
    if (await isReplaceable(file)) await replace(file, text);
    else await writeFile(file, text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new HeddleError("usage.invalid", `-o ${file} could not be written: ${why}`, { cause: error });
  }
}

/** A link or a device is written through; it is not ours to replace. */
async function isReplaceable(file: string): Promise<boolean> {
  const found = await lstat(file).catch(() => undefined);
  return found === undefined || (found.isFile() && found.nlink === 1);
}

async function replace(file: string, text: string): Promise<void> {
  const fresh = `${file}.heddle-${process.pid}`;
  const mode = (await lstat(file).catch(() => undefined))?.mode;
  try {
    await writeFile(fresh, text, { flag: "wx", ...(mode === undefined ? {} : { mode: mode & 0o777 }) });
  } catch {
    // The folder takes no new file; the old one may still be written.
    await writeFile(file, text);
    return;
  }
  try {
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
