/**
 * The path of a thread that is kept: a stable name, by which clients resume and fork it again. What lies there is the
 * thread's export; it is written when a client reads the thread with its turns, and goes with the thread.
 */
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { exportThread } from "@heddle/agent";
import type { ThreadRow } from "@heddle/journal";
import type { ServerContext } from "../rpc/call.ts";
import { refuse, threadPath } from "./thread-facts.ts";

const NAME = /^rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/;

/** The thread that is meant by an id or a path; the path counts, and must be that of a thread that is loaded. */
export async function threadMeant(
  server: ServerContext,
  { threadId, path: given }: { readonly threadId: string; readonly path?: string | null | undefined },
): Promise<string> {
  if (given === undefined || given === null || given === "") return threadId;
  const { journal } = server.heddle;
  const running = server.threads.get(threadId) === undefined ? undefined : await journal.threads.get(threadId);
  const active = running && threadPath(server.home, running);
  if (running !== undefined && active !== given) {
    const words = `requested \`${given}\`, active \`${active ?? ""}\``;
    throw refuse(`cannot resume running thread ${running.id} with stale path: ${words}`);
  }
  const named = await journal.threads.get(NAME.exec(path.basename(given))?.[1] ?? "");
  if (named !== undefined && threadPath(server.home, named) === given) return named.id;
  throw refuse(`failed to resolve rollout path \`${given}\`: file does not exist`);
}

export async function writeExport({ home, heddle }: ServerContext, row: ThreadRow): Promise<void> {
  const file = threadPath(home, row);
  if (file === null) return;
  const folder = path.dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const fresh = path.join(folder, `.${process.pid}-${Date.now()}.tmp`);
  try {
    await pipeline(
      linesOf(exportThread(heddle.journal, row.id)),
      createWriteStream(fresh, { mode: 0o600, flags: "wx" }),
    );
    await rename(fresh, file);
  } finally {
    await rm(fresh, { force: true });
  }
}

async function* linesOf(lines: AsyncIterable<string>): AsyncGenerator<string, void, void> {
  for await (const line of lines) yield `${line.trimEnd()}\n`;
}
