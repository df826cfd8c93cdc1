/** The lists of models of providers, cached in Heddle's home. A file that cannot be used is ignored. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { replaceFile } from "../replace-file.ts";
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
      // Without the cache the provider is asked again.
      await replaceFile(listFile(home, subject), JSON.stringify({ version: 1, ...list })).catch(() => undefined);
    },
  };
}
