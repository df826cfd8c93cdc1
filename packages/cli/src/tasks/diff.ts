/** `heddle task diff`: what a task changed, and what of it the verdict stands for. */
import { EXIT, visibleLine } from "@heddle/protocol";
import type { DiffFile, WorkDiff } from "@heddle/tasks";
import { requireTasks } from "@heddle/runtime/task-store";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, quoted, say } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";
import { watchForStop } from "../stop.ts";
import { count } from "./outcome.ts";

export async function diffTask(words: readonly string[], args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [selector = "", ...paths] = words;
  const isJson = args.has("json");
  const out = openScreen(process.stdout, { isRaw: isJson });
  using stop = watchForStop(undefined);
  await using store = await requireTasks(env, selector, say);
  const { id } = await store.tasks.find(selector);
  const diff = await store.tasks.diff(id, {
    ...(paths.length === 0 ? {} : { paths }),
    isStat: args.has("stat"),
    signal: stop.signal,
  });
  const style = styleFor("auto", out.isTerminal, env);
  await out.write(isJson ? toLine(diff) : `${diffLines(id, diff, style).join("\n")}\n`);
  return EXIT.ok;
}

const OF: Readonly<Record<WorkDiff["of"], string>> = {
  judged: "as it was frozen and judged",
  live: "as the folder is now; nothing of it is judged",
};

function diffLines(
  taskId: string,
  { folder, files, count: all, of, isCut }: WorkDiff,
  style: Style,
): readonly string[] {
  const head = `${count(all, "file")} changed in ${visibleLine(folder)}, ${OF[of]}`;
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

const STANDING: Readonly<Record<NonNullable<DiffFile["standing"]>, string>> = {
  delivered: "delivered",
  "left-out": "left out ",
};

function statLine({ how, shown, standing, added, removed, role, now, before }: DiffFile, style: Style): string {
  const mark =
    standing === undefined
      ? ""
      : `${standing === "left-out" ? style.yellow(STANDING[standing]) : STANDING[standing]}  `;
  const lines = added === undefined ? "" : `  +${added} -${removed ?? 0}`;
  const mode =
    now !== undefined && before !== undefined && now.mode !== before.mode ? `  mode ${before.mode} to ${now.mode}` : "";
  return `  ${mark}${how.padEnd(7)}  ${shown}${role === undefined || role === "source" ? "" : ` (${role})`}${lines}${mode}`;
}
