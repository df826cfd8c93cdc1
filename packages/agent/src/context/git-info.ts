/**
 * What a repository says of itself: commit, branch and the address of its origin. Read from its files alone, so that no
 * program that it names is run; whatever does not look as expected is left out.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { EventBody, EventOf, GitInfoChange } from "@heddle/protocol";
import { repositoryRoot } from "./repository.ts";

/** More than these files have in a large repository. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const MAX_VALUE_CHARS = 1_024;
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;
const BRANCH = /^ref: refs\/heads\/((?!.*\.\.)[^\s\0\\]+)$/;

/** How every thread begins: with what its repository says then. */
export function withGitInfo(created: EventOf<"thread.created">): readonly EventBody[] {
  const gitInfo = readGitInfo(created.workspace);
  return gitInfo === undefined ? [created] : [created, { type: "thread.metadata-changed", v: 1, gitInfo }];
}

/** undefined: the folder is in no repository, or in one without a commit. */
export function readGitInfo(folder: string): Required<GitInfoChange> | undefined {
  const root = repositoryRoot(folder);
  if (root === undefined) return undefined;
  const dotGit = join(root, ".git");
  const target = /^gitdir: (.+)$/.exec(readLine(dotGit) ?? "")?.[1];
  const own = target === undefined ? dotGit : resolve(root, target);
  const shared = readLine(join(own, "commondir"));
  const common = shared === undefined ? own : resolve(own, shared);
  const head = readLine(join(own, "HEAD")) ?? "";
  const branch = BRANCH.exec(head)?.[1];
  const sha = branch === undefined ? head : commitOf(common, `refs/heads/${branch}`);
  if (sha === undefined || !COMMIT.test(sha)) return undefined;
  return { sha, branch: fitting(branch), originUrl: fitting(originUrl(readText(join(common, "config")) ?? "")) };
}

function commitOf(common: string, ref: string): string | undefined {
  const loose = readLine(join(common, ref));
  if (loose !== undefined) return loose;
  const packed = readText(join(common, "packed-refs"))?.split("\n") ?? [];
  return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0];
}

/** Without names and passwords, and without what may stand for one behind the path. */
function originUrl(config: string): string | undefined {
  const [, section = ""] = /^\s*\[remote "origin"\]\s*$([^]*?)(?:^\s*\[|$(?![^]))/m.exec(config) ?? [];
  const [, url = ""] = /^\s*url\s*=\s*(\S+)\s*$/m.exec(section) ?? [];
  if (/^https?:/i.test(url)) return url.replace(/^(https?:\/\/)[^/]*@/i, "$1").replace(/[?#].*$/, "");
  return url === "" ? undefined : url.replace(/^([a-z+]+:\/\/[^/:@]*):[^/]*@/i, "$1@");
}

function fitting(value: string | undefined): string | null {
  return value === undefined || value.length > MAX_VALUE_CHARS ? null : value;
}

function readLine(file: string): string | undefined {
  return readText(file)?.split("\n")[0]?.trim();
}

/** undefined: it is not there, no file, or too large. A pipe is not waited for. */
function readText(file: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const found = fstatSync(fd);
    return found.isFile() && found.size <= MAX_FILE_BYTES ? readFileSync(fd, "utf8") : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
