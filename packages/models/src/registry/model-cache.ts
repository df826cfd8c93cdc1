/** What providers said they offer, kept for a while in Heddle's home. A file that cannot be used is as good as none. */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { listFile } from "./list-file.ts";

const MAX_MODELS = 10_000;
export const ListedModel = z.object({
  id: z.string().min(1).max(256),
  name: z.string().max(256).optional(),
  contextTokens: z.int().positive().optional(),
  maxOutputTokens: z.int().positive().optional(),
  readsImages: z.boolean().optional(),
});
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
  return {
    async read(subject) {
      try {
        return CachedList.safeParse(JSON.parse(await readFile(listFile(home, subject), "utf8"))).data;
      } catch {
        return undefined;
      }
    },
    async write(subject, list) {
      const file = listFile(home, subject);
      const fresh = `${file}.${randomBytes(6).toString("hex")}`;
      try {
        await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
        await writeFile(fresh, JSON.stringify({ version: 1, ...list }), { mode: 0o600, flag: "wx" });
        await rename(fresh, file);
      } catch {
        // Asking again later is all that is lost.
        await rm(fresh, { force: true });
      }
    },
  };
}
