/**
 * Checkpoints of all machines as rows of the store, with the public keys that they were signed with, so that each machine can
 * verify what others wrote. Written after the commit and beside other work: one may be missing, never too many. What a machine
 * has signed itself it verifies by the files in its home, which nobody can change with the store.
 */
import { reasonOf } from "@heddle/protocol";
import { toCheckpoint, type Checkpoint } from "../evidence/checkpoints.ts";
import { loadPublicKey, verifierOf, type Verifier } from "../evidence/keys.ts";
import type { SharedCheckpoint } from "../evidence/stored-rows.ts";
import type { Notice } from "../journal.ts";
import { integer, text, type Row } from "../record/rows.ts";
import { all, rowsAs, type Ask, type Asking } from "../sql/ask.ts";

const PAGE = 500;
const NEWEST = `SELECT line FROM checkpoints WHERE stream = ? ORDER BY version DESC, key_id DESC LIMIT ${PAGE}`;

export interface SharedCheckpoints {
  add(checkpoint: Checkpoint): void;
  /** When all that was added is there, or has failed with a notice. */
  idle(): Promise<void>;
  read(stream: string | undefined): AsyncIterable<SharedCheckpoint>;
  /** Oldest first. */
  newest(stream: string): Promise<readonly Checkpoint[]>;
}

export function createSharedCheckpoints(
  ask: Ask,
  { keys, notice }: { readonly keys: string; readonly notice: (notice: Notice) => void },
): SharedCheckpoints {
  let adding: Promise<void> = Promise.resolve();

  async function addNow(checkpoint: Checkpoint): Promise<void> {
    try {
      await ask(() => store(checkpoint, loadPublicKey(keys) ?? ""));
    } catch (error) {
      const message = `a checkpoint is in this home and not in the store: ${reasonOf(error)}`;
      notice({ kind: "checkpoint-failed", message });
    }
  }

  return {
    add(checkpoint) {
      adding = adding.then(() => addNow(checkpoint));
    },
    idle: () => adding,
    async newest(stream) {
      const rows = await ask(() => all(NEWEST, stream));
      return rows.flatMap((row) => toCheckpoint(JSON.parse(text(row, "line"))) ?? []).toReversed();
    },
    async *read(stream) {
      const verifiers = new Map(await ask(() => rowsAs("SELECT key_id, public_pem FROM signing_keys", toVerifier)));
      for (let after: readonly [string, number, string] = ["", 0, ""]; ;) {
        const rows = await ask(() => page(stream, after));
        for (const row of rows) {
          const checkpoint = toCheckpoint(JSON.parse(text(row, "line")));
          if (checkpoint !== undefined) yield { checkpoint, verifier: verifiers.get(checkpoint.keyId) };
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < PAGE) return;
        after = [text(last, "stream"), integer(last, "version"), text(last, "key_id")];
      }
    },
  };
}

function* store(checkpoint: Checkpoint, publicPem: string): Asking<void> {
  const { stream, version, keyId } = checkpoint;
  yield* all("INSERT INTO signing_keys (key_id, public_pem) VALUES (?, ?) ON CONFLICT DO NOTHING", keyId, publicPem);
  const sql = "INSERT INTO checkpoints (stream, version, key_id, line) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
  yield* all(sql, stream, version, keyId, JSON.stringify(checkpoint));
}

function toVerifier(row: Row): readonly [string, Verifier] {
  return [text(row, "key_id"), verifierOf(text(row, "public_pem"))];
}

function page(stream: string | undefined, after: readonly [string, number, string]): Asking<readonly Row[]> {
  const of = stream === undefined ? "" : "stream = ? AND ";
  const sql = `SELECT stream, version, key_id, line FROM checkpoints WHERE ${of}(stream, version, key_id) > (?, ?, ?)
    ORDER BY stream, version, key_id LIMIT ${PAGE}`;
  return all(sql, ...(stream === undefined ? [] : [stream]), ...after);
}
