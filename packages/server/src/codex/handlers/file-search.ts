/** `fuzzyFileSearch`: files by parts of their names. Files that git ignores are not found. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import { listInside, type PathRules } from "@heddle/tools/files";
import type { Call, Handler, ServerContext } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { fileRules } from "../../host/file-rules.ts";
import { askProgram } from "../../host/host-command.ts";
import { createRanking, type RankFiles } from "../../host/rank-files.ts";

export const MAX_ROOTS = 10;
const MAX_QUERY_CHARS = 200;
const MAX_FILES = 100_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const LIST_MS = 10_000;
/** A client that searches while the user types asks again with every letter. */
const KEPT_MS = 5_000;
const MAX_KEPT = 8;

interface Kept {
  readonly until: number;
  readonly files: Promise<readonly string[]>;
}

const kept = new WeakMap<ServerContext, Map<string, Kept>>();

const rankings = new WeakMap<ServerContext, RankFiles>();
/** By `cancellationToken`: the latest search of a connection. */
const latest = new WeakMap<Connection, Map<string, object>>();

export const fuzzyFileSearch: Handler<"fuzzyFileSearch"> = async ({ cancellationToken, ...query }, call) => {
  const token = cancellationToken ?? undefined;
  if (token === undefined) return { result: { files: await findFiles(query, call) } };
  const own = latest.get(call.connection) ?? new Map<string, object>();
  latest.set(call.connection, own);
  const search = {};
  own.set(token, search);
  try {
    const isWanted = (): boolean => own.get(token) === search;
    return { result: { files: await findFiles({ ...query, isWanted }, call) } };
  } finally {
    if (own.get(token) === search) own.delete(token);
  }
};

interface FileQuery {
  readonly query: string;
  readonly roots: readonly string[];
  /** A search that is not wanted any more ends with what it has found. */
  readonly isWanted?: () => boolean;
}

export async function findFiles(
  { query, roots, isWanted = () => true }: FileQuery,
  call: Call,
): Promise<readonly object[]> {
  const wanted = query.replaceAll(/\s/g, "").slice(0, MAX_QUERY_CHARS);
  if (wanted === "") return [];
  const asked = [...new Set(roots)].slice(0, MAX_ROOTS);
  const lists = await Promise.all(asked.map(async (root) => ({ root, files: await filesOf(root, call) })));
  const rank = rankings.get(call.server) ?? createRanking();
  rankings.set(call.server, rank);
  return (await rank({ query: wanted, lists, isWanted })).map(({ root, file, score, indices }) => ({
    root,
    path: file,
    match_type: "file",
    file_name: path.basename(file),
    score,
    indices,
  }));
}

async function filesOf(root: string, call: Call): Promise<readonly string[]> {
  const lists = kept.get(call.server) ?? new Map<string, Kept>();
  kept.set(call.server, lists);
  const known = lists.get(root);
  if (known !== undefined && known.until > performance.now()) return known.files;
  const files = list(path.resolve(call.server.cwd, root), call).catch(() => []);
  lists.delete(root);
  lists.set(root, { until: performance.now() + KEPT_MS, files });
  for (const name of lists.keys()) if (lists.size > MAX_KEPT) lists.delete(name);
  return files;
}

async function list(root: string, call: Call): Promise<readonly string[]> {
  const rules = fileRules(call);
  // What may not be looked at throws here.
  await listInside(root, rules, { maxEntries: 1 });
  const cwd = await realpath(root);
  // A repository may name a program that git would start to learn what changed; it is not asked.
  const argv = ["git", "-c", "core.fsmonitor=false", "ls-files", "-coz", "--exclude-standard", "--deduplicate"];
  const { exitCode, stdout } = await askProgram({ cwd, argv, maxBytes: MAX_LIST_BYTES, timeoutMs: LIST_MS }, call);
  if (exitCode !== 0) return await walked(cwd, rules);
  return stdout
    .split("\0")
    .filter((file) => file !== "")
    .slice(0, MAX_FILES);
}

/** Without git: every file, nearest folders first. */
async function walked(root: string, rules: PathRules): Promise<readonly string[]> {
  const files: string[] = [];
  const folders = [""];
  const until = performance.now() + LIST_MS;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const room = MAX_FILES - files.length - folders.length;
    if (room <= 0 || performance.now() > until) break;
    const { entries } = await listInside(path.resolve(root, folder), rules, { maxEntries: room }).catch(() => ({
      entries: [],
    }));
    for (const { name, kind } of entries) {
      if (kind === "file") files.push(`${folder}${name}`);
      else if (kind === "directory" && name !== ".git") folders.push(`${folder}${name}/`);
    }
  }
  return files;
}
