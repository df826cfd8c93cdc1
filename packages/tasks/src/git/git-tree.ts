/** The tree of a commit, and the object ids of files. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import type { RawPath, TreeEntry } from "../tree/manifest.ts";
import type { ObjectFormat, OwnGit } from "./own-git.ts";

export interface GitTreeEntry {
  /** As git writes it: 100644, 100755, 120000, 160000. */
  readonly mode: string;
  readonly object: string;
}

export const SUBMODULE_MODE = "160000";

/** Of a commit, or of a folder in it; by path from there. */
export async function readTree(git: OwnGit, commit: string, prefix = ""): Promise<ReadonlyMap<RawPath, GitTreeEntry>> {
  const listed = await git.run(["ls-tree", "-r", "-z", "--full-tree", commit]);
  const found = new Map<RawPath, GitTreeEntry>();
  for (const line of listed.toString("latin1").split("\0")) {
    const tab = line.indexOf("\t");
    const [mode, , object] = line.slice(0, tab).split(" ");
    const path = line.slice(tab + 1);
    if (tab === -1 || mode === undefined || object === undefined || !path.startsWith(prefix)) continue;
    found.set(path.slice(prefix.length), { mode, object });
  }
  return found;
}

export function isSameGitEntry(a: GitTreeEntry | undefined, b: GitTreeEntry | undefined): boolean {
  return a?.mode === b?.mode && a?.object === b?.object;
}

export function gitModeOf({ kind, mode }: TreeEntry): string | undefined {
  if (kind === "link") return "120000";
  if (kind !== "file") return undefined;
  return (mode & 0o100) === 0 ? "100644" : "100755";
}

export async function blobOf(entry: TreeEntry, stored: string | Buffer, format: ObjectFormat): Promise<string> {
  if (entry.kind === "link") return hashBlob(Buffer.from(entry.target ?? "", "latin1"), format);
  const hash = createHash(format).update(`blob ${entry.size}\0`);
  for await (const chunk of createReadStream(stored)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** What git stores of a text with Windows line ends; undefined: it has none. */
export async function blobWithPlainLineEnds(
  entry: TreeEntry,
  stored: string | Buffer,
  format: ObjectFormat,
): Promise<string | undefined> {
  if (entry.kind !== "file" || entry.size > MAX_CONVERTED_BYTES) return undefined;
  const text = await readFile(stored, "latin1");
  return text.includes("\r\n") ? hashBlob(Buffer.from(text.replaceAll("\r\n", "\n"), "latin1"), format) : undefined;
}

const MAX_CONVERTED_BYTES = 16 * 1024 * 1024;

function hashBlob(content: Buffer, format: ObjectFormat): string {
  return createHash(format).update(`blob ${content.length}\0`).update(content).digest("hex");
}
