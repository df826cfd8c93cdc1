/**
 * A thread as JSON lines that a third party can verify without this store and without Heddle:
 *   header · for each stream, oldest ancestor first: stream, its checkpoints, its events · end
 * Events carry the columns of the store under their own names; `body` is the stored text itself, because its hash is over
 * those bytes. Checkpoints come before the events they sign, so that one pass with little memory is enough. The last event
 * of each stream is signed, if need be for this export: what no signature covers could be anybody's.
 */
import { HeddleError } from "@heddle/protocol";
import { readCheckpoints, signHead, type Checkpoint } from "./checkpoints.ts";
import type { HomePaths } from "../home.ts";
import type { ExportPart } from "../journal.ts";
import { loadPublicKey, loadSigner } from "./keys.ts";
import { integer, text } from "../record/rows.ts";
import type { StoredRows } from "./stored-rows.ts";

export const FORMAT = "heddle-export";
export const FORMAT_VERSION = 1;

export async function* exportLines(
  stored: StoredRows,
  paths: HomePaths,
  parts: readonly ExportPart[],
): AsyncGenerator<string, void, void> {
  const streams: { readonly stream: string; readonly last: number }[] = [];
  for (const { stream, upTo } of parts) {
    const last = await stored.lastVersion(stream);
    streams.push({ stream, last: Math.min(upTo ?? last, last) });
  }
  const thread = streams.at(-1)?.stream ?? null;
  yield line({
    kind: "header",
    format: FORMAT,
    v: FORMAT_VERSION,
    thread,
    publicKey: loadPublicKey(paths.keys) ?? null,
  });
  let [events, checkpoints] = [0, 0];
  for (const { stream, last } of streams) {
    yield line({ kind: "stream", stream, lastVersion: last });
    const signed = [...readCheckpoints(paths.checkpoints, stream)].flatMap((file) => file.checkpoints);
    const kept = signed.filter(({ version }) => version <= last);
    const head = kept.some(({ version }) => version === last) ? [] : await signLast(stored, paths, { stream, last });
    for (const checkpoint of [...kept, ...head]) {
      checkpoints += 1;
      yield line({ kind: "checkpoint", ...checkpoint });
    }
    for (let after = 0; after < last;) {
      const rows = await stored.pageOf({ stream, after, upTo: last });
      for (const row of rows) {
        if (row["body"] === null) throw new HeddleError("store.purged", `${stream} was purged while it was exported`);
        events += 1;
        yield line({ kind: "event", ...row });
      }
      const end = rows.at(-1);
      if (end === undefined) throw new HeddleError("store.damaged", `${stream} has no event after ${after}`);
      after = integer(end, "version");
    }
  }
  yield line({ kind: "end", events, checkpoints });
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

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
