/** Files of a chat by a part of their name. What a chat cannot work in is not looked at; links are not followed. */
import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import type { ThreadRow } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import type { ChatResultOf } from "@heddle/dialects/chat";
import type { ChatHandler } from "../call.ts";
import { requireChat, settingsOf } from "../chats.ts";

const DEFAULT_LIMIT = 40;
const MAX_LIMIT = 200;
const MAX_VISITED = 25_000;
const SKIPPED = new Set([".git", "node_modules", "target", "dist", "build", ".next", ".cache"]);

type Found = ChatResultOf<"chat.files.search">["files"][number];

export const searchFiles: ChatHandler<"chat.files.search"> = async (params, { server }) => {
  const row = await requireChat(server, params);
  const hidden = (await realFolder(server.home)) ?? server.home;
  const root = await rootOf(row, params.base_path, hidden);
  const limit = Math.min(MAX_LIMIT, params.limit ?? DEFAULT_LIMIT);
  const { files, isCut } = await search({ root, limit, query: params.query.toLowerCase(), hidden });
  return { result: { files, base_path: root, ...(isCut ? { truncated: true as const } : {}) } };
};

/** The folder that was asked for, inside one that the chat has. */
async function rootOf(row: ThreadRow, wanted: string | undefined, hidden: string): Promise<string> {
  const { attachments } = settingsOf(row);
  const given = [attachments?.folder ?? [], attachments?.folders ?? []].flat();
  const roots = await Promise.all([...given, row.workspace].map(realFolder));
  const known = roots.filter((root) => root !== undefined);
  const [first] = known;
  if (first === undefined) throw new HeddleError("workspace.missing", `${row.workspace} no longer exists`);
  const folder = wanted === undefined ? first : await realFolder(path.resolve(first, wanted));
  const isOwn = folder !== undefined && known.some((root) => isWithin(folder, root));
  if (isOwn && !isWithin(folder, hidden)) return folder;
  throw new HeddleError("usage.invalid", "base_path: must be a folder of the chat, and not Heddle's own");
}

async function realFolder(folder: string): Promise<string | undefined> {
  return realpath(folder).catch(() => undefined);
}

function isWithin(folder: string, root: string): boolean {
  return folder === root || folder.startsWith(root.endsWith(path.sep) ? root : `${root}${path.sep}`);
}

interface Search {
  readonly root: string;
  readonly query: string;
  readonly limit: number;
  /** Heddle's own folder, which is nobody's work. */
  readonly hidden: string;
}

/** Nearest to the root first, until enough is found or enough was looked at. */
async function search({ root, query, limit, hidden }: Search): Promise<{ files: Found[]; isCut: boolean }> {
  const files: Found[] = [];
  const folders = [root];
  let visited = 0;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      visited += 1;
      if (visited > MAX_VISITED) return { files, isCut: true };
      const isFolder = entry.isDirectory();
      if ((!isFolder && !entry.isFile()) || (isFolder && SKIPPED.has(entry.name))) continue;
      const full = path.join(folder, entry.name);
      if (full === hidden) continue;
      if (isFolder) folders.push(full);
      const relative = path.relative(root, full);
      if (!relative.toLowerCase().includes(query)) continue;
      files.push({ name: entry.name, path: full, relative_path: relative, type: isFolder ? "directory" : "file" });
      if (files.length >= limit) return { files, isCut: true };
    }
  }
  return { files, isCut: false };
}
