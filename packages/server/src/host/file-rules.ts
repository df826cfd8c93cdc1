/**
 * What a client may touch of the machine's files. It reads what the server can read, except Heddle's own home. It writes
 * below the workspaces of the threads it works with and below the folders that the server was started for, and nowhere
 * else; there too not what programs outside Heddle act on, such as the hooks of git.
 */
import path from "node:path";
import type { PathRules } from "@heddle/tools/files";
import type { Call } from "../rpc/call.ts";
import { refuse } from "../codex/thread-facts.ts";

export function fileRules({ server, connection }: Call): PathRules {
  const { threads, host, home, cwd } = server;
  const own = threads.all.filter(({ threadId }) => threads.openFeed(threadId)?.has(connection) === true);
  const roots = [...(host.writeRoots ?? [cwd]), ...own.map(({ workspace }) => workspace)];
  // The whole machine is no folder to work in.
  return { writeRoots: [...new Set(roots)].filter((root) => root !== "/"), masked: [home] };
}

/** In its shortest form. */
export function absolutePath(text: string): string {
  if (!path.isAbsolute(text)) throw refuse("Invalid request: AbsolutePathBuf deserialized without a base path");
  return path.resolve(text);
}
