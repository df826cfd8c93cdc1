/**
 * Runs one check with its parts. A check that cannot be run is an `error`, and `not` of an error is an error, so that
 * nothing passes because it broke. Throws only when the caller stops it or this host cannot open a room.
 */
import { lstatSync } from "node:fs";
import { toHeddleError, type CheckResult, type LeafCheck } from "@heddle/protocol";
import { checkboxes } from "./checkboxes.ts";
import { toRaw, type RawPath } from "@heddle/tools/raw-path";
import { FolderCursor } from "../tree/folder-cursor.ts";
import type { RoomFiles } from "../tree/room-files.ts";
import type { CheckContext, Finding, RunLeaf } from "./check.ts";
import { command } from "./command.ts";
import { endsOf, isNoRoom, type RoomCommands } from "./commands.ts";
import { json, schema, yaml } from "./documents.ts";
import { changed, contains, fileAbsent, fileExists, globCount, matches, unchanged } from "./files.ts";
import { git } from "./git.ts";
import { http } from "./http.ts";
import { isLeaf, type NamedCheck } from "./names.ts";
import { listed } from "./shown.ts";
import { tests } from "./tests.ts";

const LEAVES: { readonly [K in LeafCheck["kind"]]: RunLeaf<K> } = {
  "file-exists": fileExists,
  "file-absent": fileAbsent,
  "glob-count": globCount,
  contains,
  matches,
  json,
  yaml,
  changed,
  unchanged,
  command,
  git,
  tests,
  checkboxes,
  http,
  schema,
};

const MAX_MESSAGE_CHARS = 500;

export interface Ran {
  readonly result: CheckResult;
  readonly isMoot: boolean;
  /** Checkboxes that were counted, by name of the check. */
  readonly boxes: Readonly<Record<string, number>>;
  /** What it read or ran of the work, parts included; undefined: this host cannot tell. */
  readonly reads: ReadonlySet<RawPath> | undefined;
  /** Of the paths that are awaited, where something lies when its commands have run, parts included. */
  readonly made: ReadonlySet<RawPath>;
}

/** Each check that runs commands gets a room of its own. */
export interface CheckRoom extends Omit<CheckContext, "name" | "commands"> {
  readonly files: RoomFiles;
  readonly openCommands: (kind: LeafCheck["kind"]) => RoomCommands;
}

export async function runCheck(named: NamedCheck, room: CheckRoom): Promise<Ran> {
  const startedAt = Date.now();
  const began = performance.now();
  const { name, check } = named;
  const below: Ran[] = [];
  let finding: Finding;
  let reads: Ran["reads"];
  let made: Ran["made"];
  if (isLeaf(check)) ({ finding, reads, made } = await runLeaf(check, name, room));
  else {
    for (const part of named.parts) {
      below.push(await runCheck(part, room));
      if (check.kind === "any" && below.at(-1)?.result.outcome === "passed") break;
    }
    finding = combine(check.kind, below);
    reads = joined(below.map((one) => one.reads));
    made = new Set(below.flatMap((one) => [...one.made]));
  }
  const { message, boxes, isMoot, output, looked: _, ...rest } = finding;
  const parts = below.flatMap(({ result: { parts: inner, ...own } }) => [own, ...(inner ?? [])]);
  const result: CheckResult = {
    name,
    kind: check.kind,
    ...rest,
    message: onOneLine(message).slice(0, MAX_MESSAGE_CHARS),
    ...(output === undefined || output === "" ? {} : { output: endsOf(output) }),
    startedAt,
    durationMs: Math.round(performance.now() - began),
    ...(parts.length === 0 ? {} : { parts }),
  };
  const counted = Object.assign({}, ...below.map((one) => one.boxes), boxes === undefined ? {} : { [name]: boxes });
  return { result, isMoot: isMoot === true, boxes: counted, reads, made };
}

function joined(all: readonly Ran["reads"][]): Ran["reads"] {
  const paths = new Set<RawPath>();
  for (const reads of all) {
    if (reads === undefined) return undefined;
    for (const path of reads) paths.add(path);
  }
  return paths;
}

async function runLeaf(
  check: LeafCheck,
  name: string,
  room: CheckRoom,
): Promise<Pick<Ran, "reads" | "made"> & { finding: Finding }> {
  const { openCommands, ...rest } = room;
  // The entry of a kind takes checks of that kind.
  const run = LEAVES[check.kind] as RunLeaf<LeafCheck["kind"]>;
  // Drops what earlier checks read.
  room.files.takeReads();
  try {
    await using commands = openCommands(check.kind);
    const finding = await run(check, { ...rest, commands, name }).catch((error: unknown): Finding => {
      room.signal.throwIfAborted();
      if (isNoRoom(error)) throw error;
      return { outcome: "error", message: toHeddleError(error).message };
    });
    const looked = new Set((finding.looked ?? []).map(toRaw));
    const made = madeIn(await commands.tree(), room.room.awaited);
    return { finding, reads: joined([await commands.reads(), room.files.takeReads(), looked]), made };
  } catch (error) {
    // The room could not be closed or asked.
    room.signal.throwIfAborted();
    if (isNoRoom(error)) throw error;
    return { finding: { outcome: "error", message: toHeddleError(error).message }, reads: undefined, made: new Set() };
  }
}

function madeIn(tree: string | undefined, awaited: readonly RawPath[] = []): Ran["made"] {
  if (tree === undefined || awaited.length === 0) return new Set();
  using cursor = new FolderCursor(`${tree}/.`);
  return new Set(awaited.filter((path) => isThere(cursor, path)));
}

function isThere(cursor: FolderCursor, path: RawPath): boolean {
  try {
    return lstatSync(cursor.at(path), { throwIfNoEntry: false }) !== undefined;
  } catch {
    // A folder around it is none, or closed: nobody comes to it by this path.
    return false;
  }
}

/** A part that was not judged leaves the whole unjudged, unless the other parts decide it. */
function combine(kind: "all" | "any" | "not", parts: readonly Ran[]): Finding {
  const of = (outcome: Finding["outcome"]): string[] =>
    parts.filter(({ result }) => result.outcome === outcome).map(({ result }) => result.name);
  const [good, bad, broken] = [of("passed"), of("failed"), of("error")];
  const moot = parts.some(({ isMoot }) => isMoot) ? ({ isMoot: true } as const) : {};
  const output = parts.map(({ result }) => `${result.outcome}: ${result.name}: ${result.message}`).join("\n");
  if (kind === "any" && good.length > 0) return { outcome: "passed", message: `passed: ${listed(good)}`, output };
  if (broken.length > 0) {
    return { outcome: "error", message: `could not be run: ${listed(broken)}`, output };
  }
  if (kind === "not") {
    if (good.length > 0) return { outcome: "failed", message: `passed, and must not: ${listed(good)}`, output };
    if (parts.some(({ isMoot }) => isMoot)) {
      return { outcome: "error", message: `there was nothing to judge: ${listed(bad)}`, output };
    }
    return { outcome: "passed", message: `failed, as it must: ${listed(bad)}`, output };
  }
  if (bad.length > 0) return { outcome: "failed", message: `failed: ${listed(bad)}`, output, ...moot };
  return { outcome: "passed", message: `all ${good.length} passed`, output };
}

function onOneLine(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ");
}
