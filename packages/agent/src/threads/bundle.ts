/**
 * Several threads and tasks as one bundle that others can verify: each thread with the past it was forked from, each task
 * with the threads of its attempts. The format is described in docs/build/bundle-format.md.
 */
import type { ExportPart, Journal } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import { lineage } from "./history.ts";
import { requireThread } from "./threads.ts";

/** More than anybody checks by hand, and few enough to name them in one line. */
const MAX_SUBJECTS = 1000;

/** `subjects`: whole ids of threads and tasks. */
export async function* exportBundle(journal: Journal, subjects: readonly string[]): AsyncGenerator<string, void, void> {
  const named = [...new Set(subjects)];
  if (named.length === 0 || named.length > MAX_SUBJECTS)
    throw new HeddleError("usage.invalid", `name 1 to ${MAX_SUBJECTS} threads or tasks`);
  const parts = new Map<string, ExportPart>();
  for (const subject of named) {
    for (const part of await partsOf(journal, subject)) {
      const known = parts.get(part.stream);
      parts.delete(part.stream);
      parts.set(part.stream, known === undefined ? part : longer(known, part));
    }
  }
  yield* journal.exportLines([...parts.values()], { subjects: named });
}

async function partsOf(journal: Journal, subject: string): Promise<readonly ExportPart[]> {
  if ((await journal.tasks.get(subject)) === undefined) {
    await requireThread(journal, subject);
    return await lineage(journal, subject);
  }
  const prepared = await journal.marks.events({ stream: subject, kinds: ["task.prepared"] });
  const threads = new Set(prepared.flatMap(({ body }) => (body.type === "task.prepared" ? [body.threadId] : [])));
  const parts: ExportPart[] = [];
  for (const thread of threads) {
    // A deleted thread leaves nothing to hand on but its hashes, which stay in the home.
    if (!(await journal.threads.isDeleted(thread))) parts.push(...(await lineage(journal, thread)));
  }
  return [...parts, { stream: subject }];
}

function longer(one: ExportPart, other: ExportPart): ExportPart {
  if (one.upTo === undefined || other.upTo === undefined) return { stream: one.stream };
  return one.upTo > other.upTo ? one : other;
}
