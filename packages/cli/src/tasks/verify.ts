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
import { toLine } from "../print/jsonl.ts";
import { marked, openScreen, say } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";
import { watchForStop } from "../stop.ts";

const AGAIN_EXIT: Readonly<Record<BundleVerdict["outcome"], number>> = { same: 0, differs: 1, missing: 3 };

export async function verifyTask(
  selector: string | undefined,
  args: ParsedArgs,
  { env, cwd }: CommandContext,
): Promise<number> {
  const bundle = args.value("bundle");
  if ((bundle === undefined) === (selector === undefined))
    throw usage("write heddle task verify ID, or heddle task verify --bundle FILE");
  const isJson = args.has("json");
  const out = openScreen(process.stdout, { isRaw: isJson });
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
  const style = styleFor("auto", out.isTerminal, env);
  await out.write(isJson ? toLine(verdict) : `${verdictLines(verdict, style).join("\n")}\n`);
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

const WORDS: Readonly<Record<BundleVerdict["outcome"], string>> = {
  same: "SAME: judged again, with the same outcome",
  differs: "DIFFERS: judged again, with another outcome",
  missing: "CANNOT BE JUDGED AGAIN",
};

function verdictLines(verdict: BundleVerdict, style: Style): readonly string[] {
  const { outcome, reasons, recorded, now, base, work, keyId, workspace } = verdict;
  const words = outcome === "same" ? style.bold(WORDS.same) : style.red(WORDS[outcome]);
  const line = (name: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${name.padEnd(10)} ${value}`];
  return [
    marked(words),
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

export async function exportTask(selector: string, args: ParsedArgs, { env, cwd }: CommandContext): Promise<number> {
  const file = args.value("bundle");
  if (file === undefined) throw usage("write heddle task export ID --bundle FILE");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  using stop = watchForStop(undefined);
  await using store = await requireTasks(env, selector, say);
  const task = await store.tasks.find(selector);
  const written = await writeBundle({
    journal: store.journal,
    home: heddleHome(env),
    task,
    file: path.resolve(cwd, file),
    signal: stop.signal,
  });
  const text = `${visibleLine(file)} is written, ${written.bytes} bytes: the whole workspace as it was, the work and the record.\nheddle task verify --bundle ${visibleLine(file)} judges it again, here or elsewhere\n`;
  await out.write(args.has("json") ? toLine({ taskId: task.id, ...written }) : text);
  return 0;
}
