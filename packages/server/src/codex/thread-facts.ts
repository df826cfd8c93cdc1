/** Finding a thread that a client names, and what is said of it. */
import { join } from "node:path";
import { isHeddleError, isUuid, type TurnSettings } from "@heddle/protocol";
import {
  codexThread,
  type CodexThread,
  type CodexThreadStatus,
  type CodexTurn,
} from "@heddle/dialects/codex-app-server";
import type { ThreadRow } from "@heddle/journal";
import type { ServerContext } from "../rpc/call.ts";
import type { LoadedThread } from "./loaded.ts";
import { nextSettings } from "./settings.ts";
import { RPC, RpcError } from "../rpc/peer.ts";

export function refuse(message: string): RpcError {
  return new RpcError(RPC.invalidRequest, message);
}

/** A malformed id is refused in the words of the original. */
export function requireThreadId(text: string, what = "thread", because: typeof refuse = refuse): string {
  const id = text.toLowerCase();
  if (isUuid(id)) return id;
  const at = text.search(/[^0-9a-f-]/i);
  const why =
    at < 0
      ? `invalid length: expected length 32 for simple format, found ${text.length}`
      : `invalid character: expected an optional prefix of \`urn:uuid:\` followed by [0-9a-fA-F-], found \`${text[at]}\` at ${at + 1}`;
  throw because(`invalid ${what} id: ${why}`);
}

export function requireLoaded(server: ServerContext, threadId: string): LoadedThread {
  const loaded = server.threads.get(requireThreadId(threadId));
  if (loaded === undefined) throw refuse(`thread not found: ${threadId}`);
  return loaded;
}

/** `otherwise` is the message of the original for a missing thread; it differs from method to method. */
export async function requireRow(server: ServerContext, threadId: string, otherwise: string): Promise<ThreadRow> {
  const row = await server.heddle.journal.threads.get(requireThreadId(threadId));
  if (row === undefined) throw refuse(`${otherwise}${threadId}`);
  return row;
}

/** Only a thread that is kept has something stored beside its turns; `unkept`: the message for another one. */
export async function requireKept(
  server: ServerContext,
  threadId: string,
  { missing = NO_ROLLOUT, unkept = missing }: { readonly missing?: string; readonly unkept?: string } = {},
): Promise<ThreadRow> {
  const row = await requireRow(server, threadId, missing);
  if (row.isEphemeral) throw refuse(`${unkept}${row.id}`);
  return row;
}

export const NO_ROLLOUT = "no rollout found for thread id ";
export const NO_METADATA = "ephemeral thread does not support metadata updates: ";

/** Beside the folders of what else belongs to a thread, which are removed with it. */
const FOLDER = "exports";

/** null: the thread is not kept. */
export function threadPath(home: string, { id, createdAt, isEphemeral }: ThreadRow): string | null {
  if (isEphemeral) return null;
  const time = new Date(createdAt).toISOString().slice(0, 19).replaceAll(":", "-");
  return join(home, FOLDER, id, `rollout-${time}-${id}.jsonl`);
}

type Shown = Pick<TurnSettings, "provider" | "model" | "effort">;

export async function describeThread(
  server: ServerContext,
  row: ThreadRow,
  turns: readonly CodexTurn[] = [],
): Promise<CodexThread> {
  const loaded = server.threads.get(row.id);
  const settings = await settingsToShow(server, row.id, loaded);
  const path = threadPath(server.home, row);
  return codexThread({ ...row, settings, status: statusOf(server, row), path }, turns);
}

/** A thread whose past cannot be read is still listed; opening it reports why. */
async function settingsToShow(
  server: ServerContext,
  threadId: string,
  loaded: LoadedThread | undefined,
): Promise<Shown | undefined> {
  try {
    if (loaded !== undefined) return await nextSettings(server, loaded);
    const { turn, thread } = await server.heddle.storedSettings(threadId);
    const { provider, model, effort } = { ...turn, ...thread };
    return provider === undefined || model === undefined ? undefined : { provider, model, effort };
  } catch (error) {
    if (isHeddleError(error)) return undefined;
    throw error;
  }
}

function statusOf(server: ServerContext, row: ThreadRow): CodexThreadStatus {
  const feed = server.threads.openFeed(row.id);
  if (feed !== undefined) return feed.status;
  if (row.lastTurnStatus === "open") return { type: "active", activeFlags: [] };
  if (server.threads.get(row.id) === undefined) return { type: "notLoaded" };
  return { type: row.lastTurnStatus === "failed" ? "systemError" : "idle" };
}
