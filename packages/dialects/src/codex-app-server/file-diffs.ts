/** Changes of files as the original shows them: one by one in an item, and all of a turn as git would. */
import type { FileChangeEntry } from "@heddle/protocol";

/** An added or deleted file is shown by its content; a moved file names its new path below the change. */
export function shownDiff({ kind, diff, movedTo }: FileChangeEntry): string {
  if (kind === "update") return movedTo === undefined ? diff : `${diff}\n\nMoved to: ${movedTo}`;
  return contentOf(diff, kind === "add" ? "+" : "-");
}

const NO_NEWLINE = "\\ No newline at end of file";

function contentOf(diff: string, sign: "+" | "-"): string {
  const lines = diff.split("\n");
  const content = lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
  if (content.length === 0) return "";
  return content.join("\n") + (lines.includes(NO_NEWLINE) ? "" : "\n");
}

const MODE = "file mode 100644";

/** With git's headers, so that tools can read it, but without blob ids. */
export function gitDiff({ path, kind, diff, movedTo }: FileChangeEntry, workspace: string): string {
  const [before, after] = [relative(path, workspace), relative(movedTo ?? path, workspace)];
  const mode = kind === "update" ? [] : [`${kind === "add" ? "new" : "deleted"} ${MODE}`];
  const heads = [
    `diff --git a/${before} b/${after}`,
    ...mode,
    `--- ${kind === "add" ? "/dev/null" : `a/${before}`}`,
    `+++ ${kind === "delete" ? "/dev/null" : `b/${after}`}`,
  ];
  return `${heads.join("\n")}\n${diff}${diff === "" || diff.endsWith("\n") ? "" : "\n"}`;
}

function relative(path: string, workspace: string): string {
  return path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;
}
