/**
 * Every checkbox of Markdown files is ticked, there is at least one, and none was removed. A tick is only a claim; combine
 * it with another check.
 */
import { HeddleError, type LeafCheckOf } from "@heddle/protocol";
import { failed, passed, type RunLeaf } from "./check.ts";
import { listed, listedNames } from "./shown.ts";

const BOX = /^\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+\[([ xX])\]\s+(.*)$/;
const FENCE = /^\s*(```|~~~)/;

export const checkboxes: RunLeaf<"checkboxes"> = async (check, { files, baseline, name }) => {
  if (check.paths === undefined && check.change === undefined) {
    throw new HeddleError("usage.invalid", "give paths, or the change of OpenSpec");
  }
  if (/[/*?[\]{}]/.test(check.change ?? "")) {
    throw new HeddleError("usage.invalid", `${JSON.stringify(check.change)} is not the name of a change`);
  }
  const { entries } = await files.find(boxGlobs(check));
  const found = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
  if (found.length === 0) return failed(`no file matches ${listed(boxGlobs(check))}`, { isMoot: true });
  let count = 0;
  const open: string[] = [];
  for (const path of found) {
    const file = await files.read(path);
    for (const box of boxesIn(file?.text ?? "")) {
      count += 1;
      if (!box.isTicked) open.push(`${path}:${box.line}: ${box.text}`);
    }
  }
  const more = { boxes: count, output: open.join("\n") };
  const before = baseline.boxes[name] ?? 0;
  if (count === 0) return failed(`there is no checkbox in ${listedNames(found)}`, { ...more, isMoot: true });
  if (open.length > 0) return failed(`${open.length} of ${count} boxes are open: ${listed(open, 3)}`, more);
  if (count < before) return failed(`${count} boxes are left of ${before}: boxes were removed, not ticked`, more);
  return passed(`all ${count} boxes are ticked`, more);
};

/** An OpenSpec change may have been archived under its name with a date. */
export function boxGlobs({ paths, change }: LeafCheckOf<"checkboxes">): readonly string[] {
  if (change === undefined) return paths ?? [];
  const ofChange = [`openspec/changes/${change}/**/*.md`, `openspec/changes/archive/*-${change}/**/*.md`];
  return [...(paths ?? []), ...ofChange];
}

interface Box {
  readonly line: number;
  readonly isTicked: boolean;
  readonly text: string;
}

/** A box in a code block is an example. */
function boxesIn(text: string): readonly Box[] {
  const boxes: Box[] = [];
  let fence: string | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const mark = FENCE.exec(line)?.[1];
    if (mark !== undefined && (fence === undefined || fence === mark)) fence = fence === undefined ? mark : undefined;
    const box = fence === undefined && mark === undefined ? BOX.exec(line) : null;
    if (box !== null) boxes.push({ line: index + 1, isTicked: box[1] !== " ", text: (box[2] ?? "").slice(0, 200) });
  }
  return boxes;
}
