/** What providers said they offer, kept for a while in Heddle's home. A file that cannot be used is as good as none. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";

const MAX_MODELS = 10_000;
export const ListedModel = z.object({ id: z.string().min(1).max(256), name: z.string().max(256).optional() });
export type ListedModel = z.infer<typeof ListedModel>;

const CachedList = z.object({
  version: z.literal(1),
  fetchedAt: z.number(),
  etag: z.string().max(1024).optional(),
  models: z.array(ListedModel).max(MAX_MODELS),
});
export type CachedList = z.infer<typeof CachedList>;

export interface ModelCache {
  read(subject: string): Promise<CachedList | undefined>;
  write(subject: string, list: Omit<CachedList, "version">): Promise<void>;
}

export function openModelCache(home: string): ModelCache {
  const folder = path.join(home, "cache", "models");
  const fileOf = (subject: string): string =>
    path.join(folder, `${createHash("sha256").update(subject).digest("hex").slice(0, 32)}.json`);
  return {
    async read(subject) {
      try {
        return CachedList.safeParse(JSON.parse(await readFile(fileOf(subject), "utf8"))).data;
      } catch {
        return undefined;
      }
    },
    async write(subject, list) {
      const file = fileOf(subject);
      const fresh = `${file}.${randomBytes(6).toString("hex")}`;
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeFile(fresh, JSON.stringify({ version: 1, ...list }), { mode: 0o600, flag: "wx" });
        await rename(fresh, file);
      } catch {
        // Asking again later is all that is lost.
        await rm(fresh, { force: true });
      }
    },
  };
}
