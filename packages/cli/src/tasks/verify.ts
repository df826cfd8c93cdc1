/**
 * `heddle task verify`: judges a task again from what was kept of it, or from a bundle. Exit codes are this command's own:
 * 0 the same verdict, 1 another one, 3 what would be needed is missing or was changed.
 */
import path from "node:path";
import { visibleLine } from "@heddle/protocol";
import { verifyBundle, writeBundle, type BundleVerdict } from "@heddle/tasks";
import { heddleHome } from "@heddle/runtime/config";
import { requireTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { marked, openScreen, say } from "../print/screen.ts";
import type { Style } from "../print/style.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { onTask } from "./on-task.ts";

const AGAIN_EXIT: Readonly<Record<BundleVerdict["outcome"], number>> = { same: 0, differs: 1, missing: 3 };

export async function verifyTask(
  selector: string | undefined,
  args: ParsedArgs,
  { env, cwd }: CommandContext,
): Promise<number> {
  const bundle = args.value("bundle");
  if ((bundle === undefined) === (selector === undefined))
    throw usage("write heddle task verify ID, or heddle task verify --bundle FILE");
  const { style, print } = openAnswer(args, env);
  using stop = watchForStop(undefined);
  const onCheck = (name: string): void => {
    if (process.stderr.isTTY) say(`runs ${name}`);
  };
  const { signal } = stop;
  const verdict =
    bundle === undefined
      ? await verifyOne(env, selector ?? "", { signal, onCheck })
      : await verifyBundle({ file: path.resolve(cwd, bundle), home: heddleHome(env), env, signal, onCheck });
  if (stop.exitCode !== undefined) return stop.exitCode;
  await print(verdict, `${verdictLines(verdict, style).join("\n")}\n`);
  return AGAIN_EXIT[verdict.outcome];
}

async function verifyOne(
  env: NodeJS.ProcessEnv,
  selector: string,
  how: { readonly signal: AbortSignal; readonly onCheck: (name: string) => void },
): Promise<BundleVerdict> {
  await using store = await requireTasks(env, selector, say);
  const { id, spec } = await store.tasks.find(selector);
  return { ...(await store.tasks.verify(id, how)), taskId: id, name: spec.name };
}

const TEXTS: Readonly<Record<BundleVerdict["outcome"], string>> = {
  same: "SAME: judged again, with the same outcome",
  differs: "DIFFERS: judged again, with another outcome",
  missing: "CANNOT BE JUDGED AGAIN",
};

function verdictLines(verdict: BundleVerdict, style: Style): readonly string[] {
  const { outcome, reasons, recorded, now, base, work, keyId, workspace } = verdict;
  const summary = outcome === "same" ? style.bold(TEXTS.same) : style.red(TEXTS[outcome]);
  const line = (name: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${name.padEnd(10)} ${value}`];
  return [
    marked(summary),
    ...line("task", verdict.taskId === undefined ? undefined : `${verdict.taskId}  ${visibleLine(verdict.name ?? "")}`),
    ...reasons.map((reason) => `  ${visibleLine(reason)}`),
    ...line(
      "verdict",
      recorded === undefined ? undefined : `${recorded.verdict} then, ${now?.verdict ?? "unknown"} now`,
    ),
    ...(now?.checks ?? []).map(({ name, outcome: how }) => `  ${how} ${visibleLine(name)}`),
    ...line("beginning", base),
    ...line("work", work),
    ...line("signed by", keyId === undefined ? undefined : `key ${keyId}: compare it with what you know of that home`),
    ...line("ran in", workspace === undefined ? undefined : "another folder, because the recorded one is not here"),
  ];
}

export async function exportTask(selector: string, args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env, cwd } = context;
  const file = args.value("bundle");
  if ((file === undefined) === !args.has("html") || (file !== undefined && args.has("output")))
    throw usage("write heddle task export ID --bundle FILE, or heddle task export ID --html -o FILE");
  using stop = watchForStop(undefined);
  if (file === undefined) return await exportPage(selector, args, context, stop);
  return await onTask(selector, args, env, async ({ journal, task, print }) => {
    const target = { home: heddleHome(env), file: path.resolve(cwd, file), signal: stop.signal };
    const written = await writeBundle({ ...target, journal, task });
    const text = `${visibleLine(file)} is written, ${written.bytes} bytes: the whole workspace as it was, the work and the record.\nheddle task verify --bundle ${visibleLine(file)} judges it again, here or elsewhere\n`;
    await print({ taskId: task.id, ...written }, text);
    return 0;
  });
}

async function exportPage(selector: string, args: ParsedArgs, context: CommandContext, stop: Stop): Promise<number> {
  const { writeRunPage } = await import("../run-page/write-run-page.ts");
  return await onTask(selector, args, context.env, async ({ journal, tasks, task }) => {
    const out = openScreen(process.stdout, { isRaw: true });
    const roots = [task.spec.workspace, ...(task.folder === undefined ? [] : [task.folder])];
    const { signal } = stop;
    const diff = (): ReturnType<typeof tasks.diff> => tasks.diff(task.id, { signal });
    const code = await writeRunPage(
      { journal, task, threadId: task.threadId, roots, diff, signal },
      args,
      context,
      out,
    );
    return stop.exitCode ?? code;
  });
}
