/**
 * What a verdict may rest on where the spec does not say what is delivered, and what it rests on otherwise. Pure: changes and
 * observed reads in, decisions out.
 *
 *   all changes ─▶ what checks name as the work
 *               ─▶ new source that a check read         ─▶ the verdict may rest on it, where something leads to it (led-to.ts)
 *               ─▶ everything else: changed files that nobody names, tests, configuration, build files …
 *                  needed by a check ─▶ the owner decides      not needed ─▶ reported
 */
import { MAX_ACCEPTED_FILES, MAX_WORK_FILES, type WorkReview } from "@heddle/protocol/tasks";
import { isText, toText, type RawPath } from "@heddle/tools/raw-path";
import { literalGlob } from "../checks/globs.ts";
import type { Change } from "../tree/manifest.ts";
import { described, roleOf } from "./file-role.ts";
import { isRepository, isSeenUnread, reasonOf, telling } from "./pick.ts";

export interface Observed {
  readonly changes: readonly Change[];
  /** Of all checks together; undefined: not known. */
  readonly reads: ReadonlySet<RawPath> | undefined;
  /** The same of the checks that run commands. */
  readonly commandReads: ReadonlySet<RawPath> | undefined;
  /** By path, as text: by a name or a wildcard, judges or not. */
  readonly isMatched: (path: string) => boolean;
  /** As the work. */
  readonly isNamed: (path: string) => boolean;
  /** Named as itself, not by a wildcard. */
  readonly isNamedByName: (path: string) => boolean;
  /** A check demands that it, or a folder it was in, is gone. */
  readonly isToGo: (path: string) => boolean;
  /** New, it could take the place of what a command of a check means. */
  readonly isRun: (path: string) => boolean;
  /** Tests that the agent wrote may be rested on. */
  readonly mayRestOnTests: boolean;
}

/** Changes that a verdict may rest on. */
export function restable(observed: Observed): readonly Change[] {
  const { changes, reads, commandReads, isNamed, isNamedByName, isToGo, isRun, mayRestOnTests } = observed;
  return changes.filter((change) => {
    const path = toText(change.path);
    if (isRepository(change) || change.now?.kind === "other") return false;
    const role = roleOf(path);
    const isSource = role === "source" || (mayRestOnTests && role === "test");
    // What is of another kind now is gone as what it was.
    const isGone = change.now === undefined || (change.before ?? change.now).kind !== change.now.kind;
    const judges = !isSource && (commandReads === undefined || isGone || commandReads.has(change.path));
    // A wildcard means the work in a folder, not the tests and configuration in it that other checks run by.
    // Who wants a folder gone wants gone what is in it.
    if (isNamed(path) && (isNamedByName(path) || change.how !== "added" || !isRun(path)))
      return !judges || isNamedByName(path) || (change.how === "removed" && isToGo(path));
    if (change.how !== "added" || change.now?.kind !== "file" || isRun(path)) return false;
    return isSource && (reads === undefined || reads.has(change.path));
  });
}

/** Source that a wildcard alone names, and that commands read, or may have told from before without reading it. */
export function matchedSource(
  observed: Pick<Observed, "changes" | "commandReads" | "isMatched" | "isNamedByName" | "isToGo">,
): readonly Change[] {
  const { changes, commandReads, isMatched, isNamedByName, isToGo } = observed;
  return changes.filter((change) => {
    const { path, how, before } = change;
    const text = toText(path);
    const isSeen = commandReads === undefined || commandReads.has(path) || isSeenUnread(change);
    if (how === "added" || before?.kind !== "file" || isToGo(text) || !isSeen) return false;
    return isMatched(text) && !isNamedByName(text) && roleOf(text) === "source";
  });
}

/** Of what it may rest on: new source that no check names by its name and that a command read, so that it has to be known how it got there. */
export function foundByCommands(
  rested: readonly Change[],
  { isNamedByName, commandReads }: Observed,
): readonly Change[] {
  return rested.filter(({ path, how, now }) => {
    const text = toText(path);
    const isRead = commandReads === undefined || commandReads.has(path);
    return how === "added" && now?.kind === "file" && isRead && !isNamedByName(text) && roleOf(text) === "source";
  });
}

/** Made by tools, and made again from what is delivered. */
const NOT_PROPOSED: ReadonlySet<string> = new Set(["repository", "dependency", "cache"]);
const SHOWN = 20;

/** Of what a verdict may not rest on by itself: what a check read, and what it only may have looked for. */
export function splitOthers(
  { changes, reads }: Pick<Observed, "changes" | "reads">,
  rested: readonly Change[],
): { readonly read: readonly Change[]; readonly unread: readonly Change[] } {
  const own = new Set(rested.map(({ path }) => path));
  const others = telling(changes).filter(({ path }) => !own.has(path));
  return { read: others.filter(isReadIn(reads)), unread: others.filter((change) => !isReadIn(reads)(change)) };
}

/** Nobody reads what is gone. */
function isReadIn(reads: Observed["reads"]): (change: Change) => boolean {
  return ({ path, how }) => reads === undefined || how === "removed" || reads.has(path);
}

export interface Rested {
  readonly rested: readonly Change[];
  readonly failing: readonly string[];
  /** The checks pass with what they read; otherwise all that changed is named. */
  readonly isReadEnough: boolean;
}

/** The checks passed on everything the agent left, and not on what they may rest on. */
export function restsReview(
  { changes, reads, isMatched }: Pick<Observed, "changes" | "reads" | "isMatched">,
  { rested, failing, isReadEnough }: Rested,
): WorkReview {
  const { read, unread } = splitOthers({ changes, reads }, rested);
  const needed = (isReadEnough ? read : [...read, ...unread]).toSorted(bySuspicion);
  const named = telling(rested).filter(isReadIn(reads));
  const isWild = ({ path }: Change): boolean => isMatched(toText(path));
  const kinds = [
    ["files that no check names as the work", needed.filter((change) => !isWild(change))],
    ["files that a check names only by a wildcard or their folder, and that may judge the work", needed.filter(isWild)],
  ] as const;
  const lists = kinds.flatMap(([what, some]) => (some.length === 0 ? [] : [`${what}: ${listedPaths(some)}`]));
  const known =
    reads === undefined ? " (what checks read is not known on this host, so all that changed is listed)" : "";
  const also = named.length === 0 ? "" : `, beside ${listedPaths(named)}`;
  const message =
    `the checks pass only with ${lists.join("; and with ")}${also}${known}. ` +
    `Without them ${failing.join(", ")} does not pass`;
  return reviewOf(message, needed, [...named, ...needed]);
}

function reviewOf(message: string, needed: readonly Change[], wanted: readonly Change[]): WorkReview {
  const deliver = proposed(wanted);
  const files = needed.map(({ path }) => toText(path));
  return { reasons: [reasonOf("rests", message, files)], ...(deliver.length === 0 ? {} : { deliver: [...deliver] }) };
}

/** Exactly these, each by a glob for it alone; nothing where they are too many, or a name is no text that leads back to it. */
function proposed(changes: readonly Change[]): readonly string[] {
  const wanted = changes.filter(({ path }) => !NOT_PROPOSED.has(roleOf(toText(path))));
  if (wanted.length > MAX_ACCEPTED_FILES || !wanted.every(({ path }) => isText(path))) return [];
  return wanted.map(({ path, before, now }) =>
    literalGlob(toText(path), before?.kind === "folder" || now?.kind === "folder"),
  );
}

/** A verdict names what it rests on. Where that is too much, something could hide in it. */
export function unnameableReview(rested: readonly Change[]): WorkReview | undefined {
  const all = telling(rested);
  if (all.length <= MAX_WORK_FILES) return undefined;
  const message =
    `the checks pass with ${all.length} files of the work, more files than a verdict can name (${MAX_WORK_FILES}); ` +
    "say in the spec which of them are the work (deliver: [globs])";
  return reviewOf(message, all, all);
}

function listedPaths(changes: readonly Change[]): string {
  const shown = changes.slice(0, SHOWN).map(({ path, how }) => described({ path: toText(path), how }));
  return `${shown.join(", ")}${changes.length > SHOWN ? ` and ${changes.length - SHOWN} more` : ""}`;
}

/** What can be a judge comes before what is work by its name. */
function bySuspicion(a: Change, b: Change): number {
  return rank(a) - rank(b);
}

function rank({ path }: Change): number {
  const order = ["test", "build", "configuration", "other", "source", "dependency", "repository", "cache"];
  return order.indexOf(roleOf(toText(path)));
}
