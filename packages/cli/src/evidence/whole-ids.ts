/** Ids in filters by their beginnings or names: a short one means what it stands for, and is never silently nothing. */
import { findEntry, findThread } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { defined, isHeddleError, OWNER, visibleLine } from "@heddle/protocol";
import { openTasks } from "@heddle/tasks";
import { usage, type ParsedArgs } from "../args.ts";

/** As long as the shortest whole id, that of a thread or turn. */
const WHOLE_CHARS = 36;

/** The filters of a query that are ids. */
export async function wholeIds(journal: Journal | undefined, args: ParsedArgs) {
  if (journal === undefined) return {};
  const thread = async (id: string): Promise<string> => orWhole(id, async () => (await findThread(journal, id)).id);
  const task = async (id: string): Promise<string> =>
    orWhole(id, async () => (await openTasks({ journal }).as(OWNER).find(id)).id);
  const [turn, forkOf, replyTo] = [args.value("turn"), args.value("fork-of"), args.value("reply-to")];
  if (turn !== undefined && turn.length < WHOLE_CHARS)
    throw usage(`--turn ${visibleLine(turn)} must be a whole id, as heddle evidence query shows it`);
  return defined({
    thread: await all(args.values("thread"), thread),
    task: await all(args.values("task"), task),
    forkOf: forkOf === undefined ? undefined : await thread(forkOf),
    replyTo: replyTo === undefined ? undefined : await orWhole(replyTo, () => findEntry(journal, replyTo)),
  });
}

async function all(ids: readonly string[], find: (id: string) => Promise<string>): Promise<string[] | undefined> {
  return ids.length === 0 ? undefined : await Promise.all(ids.map(find));
}

/** What was deleted or imported is still asked for by its whole id. */
async function orWhole(id: string, find: () => Promise<string>): Promise<string> {
  try {
    return await find();
  } catch (error) {
    if (isHeddleError(error) && error.code.endsWith(".not-found") && id.length >= WHOLE_CHARS) return id;
    throw error;
  }
}
