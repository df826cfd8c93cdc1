/** Replaces a file as a whole: readers see the old content or the new one. */
import { randomBytes } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import path from "node:path";

export async function replaceFile(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    {
      await using handle = await open(fresh, "wx", 0o600);
      await handle.writeFile(text);
      await handle.sync();
    }
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
