/** Where the work of a thread belongs, as its clients say: kept with it, told back to them, and used for nothing else. */
import { HeddleError, type By, type GitInfoChange } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { requireThread } from "./threads.ts";

const MAX_CHARS = 4_096;

export async function changeGitInfo(
  journal: Journal,
  threadId: string,
  { gitInfo, by }: { readonly gitInfo: GitInfoChange } & By,
): Promise<void> {
  await requireThread(journal, threadId);
  const values = Object.values(gitInfo);
  if (values.some((value) => typeof value === "string" && (value.trim() === "" || value.length > MAX_CHARS))) {
    throw new HeddleError("usage.invalid", `a value of gitInfo has 1 to ${MAX_CHARS} characters; null removes it`);
  }
  const events = [{ type: "thread.metadata-changed", v: 1, gitInfo }] as const;
  await journal.append({ stream: threadId, author: by, events });
}
