/** `heddle task diff`: what a task changed, and what of it the verdict stands for. */
import { counted, EXIT, visibleLine } from "@heddle/protocol";
import type { DiffFile, WorkDiff } from "@heddle/tasks";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { quoted } from "../print/screen.ts";
import type { Style } from "../print/style.ts";
import { watchForStop } from "../stop.ts";
import { onTask } from "./on-task.ts";

export async function diffTask(rest: readonly string[], args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [selector = "", ...paths] = rest;
  using stop = watchForStop(undefined);
  return await onTask(selector, args, env, async ({ tasks, task: { id }, style, print }) => {
    const of = { ...(paths.length === 0 ? {} : { paths }), isStat: args.has("stat"), signal: stop.signal };
    const diff = await tasks.diff(id, of);
    await print(diff, `${diffLines(id, diff, style).join("\n")}\n`);
    return EXIT.ok;
  });
}

const OF: Readonly<Record<WorkDiff["of"], string>> = {
  judged: "as it was frozen and judged",
  live: "as the folder is now; nothing of it is judged",
};

export function diffLines(taskId: string, diff: WorkDiff, style: Style): readonly string[] {
  const { folder, files, count: all, of, isCut } = diff;
  const head = `${counted(all, "file")} changed in ${visibleLine(folder)}, ${OF[of]}`;
  const left = all > files.length ? [`and ${all - files.length} more`] : [];
  const cut = isCut
    ? [style.yellow(`some of it is too long to be shown; name files: heddle task diff ${taskId} PATH`)]
    : [];
  return [
    head,
    ...files.map((file) => statLine(file, style)),
    ...left,
    ...files.flatMap((file) =>
      // The agent chose the name, too.
      file.diff === undefined ? [] : ["", ...quoted(file.shown), ...quoted(file.diff.trimEnd())],
    ),
    ...cut,
  ];
}

function statLine({ how, shown, standing, added, removed, role, now, before }: DiffFile, style: Style): string {
  const mark = { delivered: "delivered  ", "left-out": `${style.yellow("left out ")}  `, none: "" }[standing ?? "none"];
  const lines = added === undefined ? "" : `  +${added} -${removed ?? 0}`;
  const mode =
    now !== undefined && before !== undefined && now.mode !== before.mode ? `  mode ${before.mode} to ${now.mode}` : "";
  return `  ${mark}${how.padEnd(7)}  ${shown}${role === undefined || role === "source" ? "" : ` (${role})`}${lines}${mode}`;
}
