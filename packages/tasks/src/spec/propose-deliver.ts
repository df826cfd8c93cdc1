/**
 * Proposes what a task delivers: what its checks or its goal name, else the folders with sources. Never files that a check
 * runs, nor, where commands decide, existing tests, configuration or build files.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { globList, literalGlob, SKIPPED } from "../checks/globs.ts";
import { leavesOf } from "../checks/names.ts";
import { roleOf } from "../judge/file-role.ts";
import { isJudge, namedGlobs, runsCommands } from "../judge/named-work.ts";

const MAX_LOOKED_AT = 20_000;
const MAX_PROPOSED = 20;

type SpecPart = Pick<TaskSpec, "goal" | "checks" | "workspace">;

export async function proposeDeliver(spec: SpecPart): Promise<readonly string[] | undefined> {
  const files = await filesIn(spec.workspace);
  const isCommanded = spec.checks.some(runsCommands);
  const judges = isJudge(spec);
  const mayBe = (path: string): boolean => !judges(path) && (!isCommanded || ROLES.has(roleOf(path)));
  const named = [...namedGlobs(spec), ...pathsIn(spec.goal, files)].filter((glob) => isGlob(glob) || mayBe(glob));
  const wanted = named.length > 0 ? named : isCommanded ? sourceFolders(files.filter(mayBe)) : [];
  const unique = [...new Set(wanted)];
  if (unique.length === 0 || unique.length > MAX_PROPOSED) return undefined;
  const free = excluded(
    unique,
    files.filter((path) => !mayBe(path)),
  );
  return free === undefined ? undefined : [...unique, ...free];
}

const ROLES: ReadonlySet<string> = new Set(["source", "other"]);

function isGlob(path: string): boolean {
  return /[*?[{]/.test(path) || path.endsWith("/");
}

/** Words of the goal that are files, or look like new sources. */
function pathsIn(goal: string, files: readonly string[]): readonly string[] {
  const known = new Set(files);
  const words = goal.split(/[\s"'`()[\]{}<>,;:]+/).map((word) => word.replace(/^\.\//, "").replace(/[.!?]+$/, ""));
  return words
    .filter(
      (word) =>
        known.has(word) || (/^[\w@+-][\w@+./-]*\.\w{1,8}$/.test(word) && !word.includes("..") && isMade(word, files)),
    )
    .map((word) => literalGlob(word));
}

/** A new file with an extension that is used here, or a page. */
function isMade(word: string, files: readonly string[]): boolean {
  if (roleOf(word) !== "source") return false;
  const ending = word.slice(word.lastIndexOf("."));
  return /\.(md|rst|txt|adoc|html)$/i.test(word) || files.some((path) => path.endsWith(ending));
}

/** `src/**` for `src/a/b.js`; files at the top only where there are no folders. */
function sourceFolders(files: readonly string[]): readonly string[] {
  const sources = files.filter((path) => roleOf(path) === "source" && !/\.(md|rst|txt|adoc)$/i.test(path));
  const folders = sources.filter((path) => path.includes("/")).map((path) => path.split("/", 1)[0] ?? "");
  // A folder whose name is a pattern is left to the user.
  const plain = folders.filter((folder) => literalGlob(folder) === folder).map((folder) => `${folder}/**`);
  return [...new Set(folders.length > 0 ? plain : sources.map((path) => literalGlob(path)))].toSorted();
}

/** Exclusions for what must not be delivered: by patterns, else one by one. undefined: too many. */
function excluded(wanted: readonly string[], others: readonly string[]): readonly string[] | undefined {
  const free: string[] = [];
  for (;;) {
    const isTaken = globList([...wanted, ...free]);
    const next = others.find((path) => isTaken(path));
    if (next === undefined) return free;
    if (free.length === MAX_PROPOSED) return undefined;
    free.push(`!${formOf(next) ?? literalGlob(next)}`);
  }
}

function formOf(path: string): string | undefined {
  const [, dotted] = /\.(test|tests|spec|snap)\.[^/]+$/.exec(path) ?? [];
  if (dotted !== undefined) return `**/*.${dotted}.*`;
  const [, folder] = /(?:^|\/)(tests?|specs?|__tests__|__mocks__|__snapshots__|testdata|fixtures?)\//.exec(path) ?? [];
  return folder === undefined ? undefined : `**/${folder}/**`;
}

async function filesIn(root: string): Promise<readonly string[]> {
  const files: string[] = [];
  const folders = [""];
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(path);
      else if (entry.isFile()) files.push(path);
      if (files.length + folders.length >= MAX_LOOKED_AT) return files;
    }
  }
  return files;
}

/** Checks decide, and the spec does not say what is delivered. */
export function lacksDeliver({ deliver, checks }: Pick<TaskSpec, "deliver" | "checks">): boolean {
  return deliver === undefined && leavesOf(checks).length > 0;
}

export function deliverLine(globs: readonly string[]): string {
  return `deliver: [${globs.map((glob) => (/^[\w./-]+$/.test(glob) ? glob : JSON.stringify(glob))).join(", ")}]`;
}
