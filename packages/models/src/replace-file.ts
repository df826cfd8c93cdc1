/** Replaces a file as a whole: readers see the old content or the new one. */
import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import path from "node:path";
import { failpoint } from "@heddle/protocol/failpoints";

/** False: when the new content was on disk, `isStill` said that it must not take the place of the old one. */
export async function replaceFile(file: string, text: string, isStill = (): boolean => true): Promise<boolean> {
  const fresh = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    {
      await using handle = await open(fresh, "wx", 0o600);
      await handle.writeFile(text);
      await handle.sync();
    }
    if (!isStill()) {
      await rm(fresh, { force: true });
      return false;
    }
    failpoint("file.before-rename");
    // Nothing of this process comes between the look and this.
    renameSync(fresh, file);
    return true;
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
