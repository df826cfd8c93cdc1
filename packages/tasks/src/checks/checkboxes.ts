/**
 * Every checkbox of Markdown files is ticked, there is at least one, and each of the beginning is still there, by its text. A
 * tick is only a claim; combine it with another check.
 */
import { HeddleError, type LeafCheckOf } from "@heddle/protocol";
import { openRoomFiles } from "../tree/room-files.ts";
import { failed, passed, type RoomContents, type RunLeaf } from "./check.ts";
import { listed, listedNames } from "./shown.ts";
import type { Workspace } from "./workspace.ts";

const BOX = /^\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+\[([ xX])\]\s+(.*)$/;
const FENCE = /^\s*(```|~~~)/;

export const checkboxes: RunLeaf<"checkboxes"> = async (check, { files, baseline, room, name, signal }) => {
  if (check.paths === undefined && check.change === undefined) {
    throw new HeddleError("usage.invalid", "give paths, or the change of OpenSpec");
  }
  if (/[/*?[\]{}]/.test(check.change ?? "")) {
    throw new HeddleError("usage.invalid", `${JSON.stringify(check.change)} is not the name of a change`);
  }
  const { entries } = await files.find(boxGlobs(check));
  const found = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
  if (found.length === 0) return failed(`no file matches ${listed(boxGlobs(check))}`, { isMoot: true });
  const boxes = await boxesOf(files, found);
  const count = boxes.length;
  const open = boxes.filter(({ isTicked }) => !isTicked).map(shown);
  const more = { boxes: count, output: open.join("\n") };
  const before = baseline.boxes[name] ?? 0;
  if (count === 0) return failed(`there is no checkbox in ${listedNames(found)}`, { ...more, isMoot: true });
  if (open.length > 0) return failed(`${open.length} of ${count} boxes are open: ${listed(open, 3)}`, more);
  if (count < before) return failed(`${count} boxes are left of ${before}: boxes were removed, not ticked`, more);
  const removed = missing(await boxesBefore(room, { check, signal }), boxes).map(shown);
  if (removed.length > 0) {
    const output = removed.join("\n");
    return failed(`boxes were removed or say something else, not ticked: ${listed(removed, 3)}`, { ...more, output });
  }
  return passed(`all ${count} boxes are ticked`, more);
};

async function boxesOf(files: Workspace, paths: readonly string[]): Promise<readonly Box[]> {
  const boxes: Box[] = [];
  for (const path of paths) boxes.push(...boxesIn(path, (await files.read(path))?.text ?? ""));
  return boxes;
}

async function boxesBefore(
  { base, frozen, workspace: root }: RoomContents,
  { check, signal }: { readonly check: LeafCheckOf<"checkboxes">; readonly signal: AbortSignal },
): Promise<readonly Box[]> {
  if (frozen === undefined) return [];
  const files = openRoomFiles(base, { frozen, picked: [] }, { root, signal });
  const { entries } = await files.find(boxGlobs(check));
  const regular = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
  return await boxesOf(files, regular);
}

/** Of `before`, each of which has to be one of `now`, in any file; what was done may be said after its text. */
function missing(before: readonly Box[], now: readonly Box[]): readonly Box[] {
  const left = now.map(textOf).toSorted((a, b) => a.length - b.length);
  // The longest first, so that a shorter one does not take its place.
  return before
    .toSorted((a, b) => textOf(b).length - textOf(a).length)
    .filter((box) => {
      const at = left.findIndex((text) => text.startsWith(textOf(box)));
      if (at !== -1) left.splice(at, 1);
      return at === -1;
    });
}

function textOf({ text }: Box): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function shown({ path, line, text }: Box): string {
  return `${path}:${line}: ${text}`;
}

/** An OpenSpec change may have been archived under its name with a date. */
export function boxGlobs({ paths, change }: LeafCheckOf<"checkboxes">): readonly string[] {
  if (change === undefined) return paths ?? [];
  const ofChange = [`openspec/changes/${change}/**/*.md`, `openspec/changes/archive/*-${change}/**/*.md`];
  return [...(paths ?? []), ...ofChange];
}

interface Box {
  readonly path: string;
  readonly line: number;
  readonly isTicked: boolean;
  readonly text: string;
}

/** A box in a code block is an example. */
function boxesIn(path: string, text: string): readonly Box[] {
  const boxes: Box[] = [];
  let fence: string | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const mark = FENCE.exec(line)?.[1];
    if (mark !== undefined && (fence === undefined || fence === mark)) fence = fence === undefined ? mark : undefined;
    const box = fence === undefined && mark === undefined ? BOX.exec(line) : null;
    if (box !== null)
      boxes.push({ path, line: index + 1, isTicked: box[1] !== " ", text: (box[2] ?? "").slice(0, 200) });
  }
  return boxes;
}
