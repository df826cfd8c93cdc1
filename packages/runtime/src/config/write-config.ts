/** Replaces Heddle's own config.toml as a whole: a reader sees the old text or the new one, never a part. */
import { randomBytes } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { HeddleError, reasonOf } from "@heddle/protocol";

export async function writeWhole(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await using handle = await open(fresh, "wx", 0o600);
    await handle.writeFile(text);
    await handle.sync();
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    const why = reasonOf(error);
    throw new HeddleError("store.failed", `${file} could not be written: ${why}`, { cause: error });
  }
}
