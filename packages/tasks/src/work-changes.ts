/** What an attempt changed, as text of bounded size: a diff where git knows the beginning, names of files elsewhere. */
import type { TaskBaseline } from "@heddle/protocol";
import { ask } from "./checks/git.ts";
import { listed } from "./checks/shown.ts";
import type { OpenPlace } from "./checks/run-all.ts";

/** Together a few ten thousand tokens. */
const MAX_DIFF_CHARS = 60_000;
const MAX_NEW_FILES = 20;
const MAX_NEW_FILE_CHARS = 8_000;

export async function describeWork(open: OpenPlace, baseline: TaskBaseline): Promise<string> {
  if (baseline.git === undefined) return await changedNames(open, baseline);
  const diff = await ask(open.commands, [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--relative",
    "--stat",
    "--patch",
    baseline.git.commit,
    "--",
  ]);
  const fresh = await ask(open.commands, ["ls-files", "--others", "--exclude-standard", "-z"]);
  const parts = [diff];
  const names = fresh.split("\0").filter((name) => name !== "");
  for (const name of names.slice(0, MAX_NEW_FILES)) {
    const file = await open.files.read(name).catch(() => undefined);
    const text = file === undefined || file.text.includes("\0") ? "(not shown)" : cut(file.text, MAX_NEW_FILE_CHARS);
    parts.push(`new file ${name}:\n${text}`);
  }
  if (names.length > MAX_NEW_FILES) parts.push(`and ${names.length - MAX_NEW_FILES} more new files`);
  return cut(parts.join("\n"), MAX_DIFF_CHARS);
}

async function changedNames({ files }: OpenPlace, baseline: TaskBaseline): Promise<string> {
  const changed: string[] = [];
  for (const [path, before] of Object.entries(baseline.files)) {
    if (((await files.hash(path)) ?? "") !== before) changed.push(path);
  }
  return `There is no git repository. Of the files that the checks name, these changed: ${listed(changed, 50) || "none"}.`;
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}\n[... ${text.length - most} characters left out ...]`;
}
