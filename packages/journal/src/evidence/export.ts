/**
 * Threads and tasks as JSON lines that a third party can verify without this store and without Heddle; docs/build/bundle-format.md
 * is the description that others program by:
 *   header · for each stream, oldest ancestor first: stream, its checkpoints, its events · whole outputs, where they were
 *   asked for · end, with a signature over all lines
 * Events carry the columns of the store under their own names; `body` is the stored text itself, because its hash is over
 * those bytes. Checkpoints come before the events they sign, so that one pass with little memory is enough. The last event
 * of each stream is signed, if need be for this export: what no signature covers could be anybody's.
 */
import { createHash } from "node:crypto";
import { HeddleError } from "@heddle/protocol";
import { readCheckpoints, signHead, type Checkpoint } from "./checkpoints.ts";
import type { HomePaths } from "../home.ts";
import type { ExportPart, ExportOptions } from "../journal.ts";
import { checkBlob, readBlob } from "../blobs/blob-files.ts";
import { bodyOf, factsIn, textIn } from "../replay/facts.ts";
import { loadPublicKey, loadSigner } from "./keys.ts";
import { integer, text } from "../record/rows.ts";
import { sealWith } from "./seal.ts";
import type { StoredRows } from "./stored-rows.ts";

export const FORMAT = "heddle-export";
/** 1 had one thread and no signature over the whole; it is still read. */
export const FORMAT_VERSION = 2;
/** With whole outputs behind the streams. */
export const FORMAT_WITH_BLOBS = 3;

interface Part {
  readonly stream: string;
  readonly last: number;
  readonly isCut: boolean;
}

export async function* exportLines(
  stored: StoredRows,
  paths: HomePaths,
  { parts, subjects, withOutputs }: ExportOptions & { readonly parts: readonly ExportPart[] },
): AsyncGenerator<string, void, void> {
  const streams: Part[] = [];
  for (const { stream, upTo } of parts) {
    const last = await stored.lastVersion(stream);
    streams.push({ stream, last: Math.min(upTo ?? last, last), isCut: upTo !== undefined && upTo < last });
  }
  const digest = createHash("sha256");
  const count = { events: 0, checkpoints: 0 };
  for await (const value of contentOf(stored, paths, { streams, subjects, withOutputs })) {
    if (value.kind === "event") count.events += 1;
    if (value.kind === "checkpoint") count.checkpoints += 1;
    const text = `${JSON.stringify(value)}\n`;
    digest.update(text);
    yield text;
  }
  const sha256 = digest.digest("hex");
  const signature = sealWith(loadSigner(paths.keys), sha256) ?? null;
  yield `${JSON.stringify({ kind: "end", ...count, sha256, signature })}\n`;
}

type Line = Readonly<Record<string, unknown>> & {
  readonly kind: "header" | "stream" | "checkpoint" | "event" | "blob";
};

async function* contentOf(
  stored: StoredRows,
  paths: HomePaths,
  { streams, subjects, withOutputs = false }: ExportOptions & { readonly streams: readonly Part[] },
): AsyncGenerator<Line, void, void> {
  const thread = streams.at(-1)?.stream ?? null;
  const publicKey = loadPublicKey(paths.keys) ?? null;
  const named = subjects ?? (thread === null ? [] : [thread]);
  const v = withOutputs ? FORMAT_WITH_BLOBS : FORMAT_VERSION;
  const blobs = new Set<string>();
  yield { kind: "header", format: FORMAT, v, thread, subjects: named, publicKey };
  for (const { stream, last, isCut } of streams) {
    yield { kind: "stream", stream, lastVersion: last, ...(isCut ? { isCut } : {}) };
    const signed = [...readCheckpoints(paths.checkpoints, stream)].flatMap((file) => file.checkpoints);
    const kept = signed.filter(({ version }) => version <= last);
    const head = kept.some(({ version }) => version === last) ? [] : await signLast(stored, paths, { stream, last });
    for (const checkpoint of [...kept, ...head]) yield { kind: "checkpoint", ...checkpoint };
    for await (const line of eventsOf(stored, { stream, last })) {
      yield line;
      const name = withOutputs ? blobIn(line) : undefined;
      if (name !== undefined) blobs.add(name);
    }
  }
  for (const name of blobs) yield* blobLines(paths.home, name);
}

/** Which whole output an event names. */
function blobIn({ type, body }: Line): string | undefined {
  if (type !== "item.completed" || typeof body !== "string" || !body.includes("outputBlob")) return undefined;
  return textIn(factsIn(bodyOf(type, body) ?? {}, "item"), "outputBlob");
}

/** What the home keeps no longer is left out. */
async function* blobLines(home: string, name: string): AsyncGenerator<Line, void, void> {
  if ((await checkBlob(home, name)) === "missing") return;
  const line = { kind: "blob", sha256: name } as const;
  for await (const piece of readBlob(home, name)) yield { ...line, data: piece.toString("base64") };
  yield { ...line, data: "", isLast: true };
}

async function* eventsOf(
  stored: StoredRows,
  { stream, last }: Pick<Part, "stream" | "last">,
): AsyncGenerator<Line, void, void> {
  const end = await stored.of(stream, last);
  const isDeleted = end !== undefined && text(end, "type") === "thread.deleted";
  for (let after = 0; after < last;) {
    const rows = await stored.pageOf({ stream, after, upTo: last });
    for (const row of rows) {
      // Of a deleted thread nothing is left to hand on; single contents may have been purged before.
      if (row["body"] === null && (isDeleted || (await isDeletedNow(stored, stream))))
        throw new HeddleError("store.purged", `${stream} was purged while it was exported`);
      yield { kind: "event", ...row };
    }
    const newest = rows.at(-1);
    if (newest === undefined) throw new HeddleError("store.damaged", `${stream} has no event after ${after}`);
    after = integer(newest, "version");
  }
}

async function isDeletedNow(stored: StoredRows, stream: string): Promise<boolean> {
  const last = await stored.lastOf(stream);
  return last !== undefined && text(last, "type") === "thread.deleted";
}

async function signLast(
  stored: StoredRows,
  paths: HomePaths,
  { stream, last }: { readonly stream: string; readonly last: number },
): Promise<readonly Checkpoint[]> {
  const signer = loadSigner(paths.keys);
  const row = await stored.of(stream, last);
  if (signer === undefined || row === undefined) return [];
  return [signHead({ stream, version: last, hash: text(row, "hash"), at: integer(row, "at") }, signer)];
}
