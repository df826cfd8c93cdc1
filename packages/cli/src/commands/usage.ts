/** `heddle usage`: the ledger of this home. What models took, each answer counted once on its day (UTC). */
import { USAGE_KEYS, type Journal, type UsageKey, type UsageRow } from "@heddle/journal";
import { counted, EXIT, isHeddleError, OWNER, visibleLine } from "@heddle/protocol";
import { openRecord } from "@heddle/runtime/record";
import { openTasks } from "@heddle/tasks";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";

const DEFAULT_ROWS = 100;
const MAX_ROWS = 10_000;

export const usageCommand: Command = {
  usage: "usage [--by day,model,...] [--from DAY] [--to DAY] [--json]",
  about:
    "Shows token usage: requests, tokens and dollars by day in UTC, from the record of this home. Of requests whose price\n" +
    "is not known the tokens are counted, and the dollars say so.",
  options: [
    {
      name: "by",
      value: "WORDS",
      help: `What to group by, separated by commas: ${USAGE_KEYS.join(", ")} (default day)`,
    },
    { name: "from", value: "DAY", help: "First day: 2026-11-01" },
    { name: "to", value: "DAY", help: "Last day" },
    { name: "task", value: "ID", help: "Only this task: an id, the beginning of one, or a name" },
    { name: "limit", value: "N", help: `How many rows (default ${DEFAULT_ROWS})` },
    { name: "json", help: "One JSON object per row" },
  ],
  examples: ["heddle usage", "heddle usage --by model", "heddle usage --by task,model --from 2026-11-01 --json"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  if (args.positionals.length > 0) throw usage("heddle usage takes no arguments, only options");
  const by = (args.value("by") ?? "day").split(",").map(keyOf);
  const [from, to] = [dayOf(args, "from"), dayOf(args, "to")];
  const selector = args.value("task");
  const limit = limitOf(args.value("limit"));
  const out = openOutput(process.stdout);
  await using journal = await openRecord(env);
  const task = selector === undefined ? undefined : await taskIdOf(journal, selector);
  const only = task === undefined ? {} : { only: { task } };
  const rows = (await journal?.usage.rows({ by, from, to, ...only, limit: limit + 1 })) ?? [];
  for (const row of rows.slice(0, limit)) await out.write(args.has("json") ? toLine(row) : `${line(row, by)}\n`);
  if (args.has("json")) return EXIT.ok;
  if (rows.length === 0) await out.write("no model has been used here yet\n");
  if (rows.length > limit) process.stderr.write(`heddle: there are more rows; --limit ${limit * 2} shows them\n`);
  return EXIT.ok;
}

/** Usage outlives its task: one that was deleted is still found by its whole id. */
async function taskIdOf(journal: Journal | undefined, selector: string): Promise<string> {
  if (journal === undefined) return selector;
  try {
    return (await openTasks({ journal }).as(OWNER).find(selector)).id;
  } catch (error) {
    if (isHeddleError(error) && error.code === "task.not-found") return selector;
    throw error;
  }
}

function keyOf(word: string): UsageKey {
  const key = USAGE_KEYS.find((known) => known === word.trim());
  if (key === undefined) throw usage(`--by takes ${USAGE_KEYS.join(", ")}, several with commas; not "${word}"`);
  return key;
}

function dayOf(args: ParsedArgs, name: "from" | "to"): string | undefined {
  const day = args.value(name);
  if (day === undefined || (/^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day)))) return day;
  throw usage(`--${name} takes a day such as 2026-11-15, not "${day}"`);
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_ROWS;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_ROWS) return limit;
  throw usage(`--limit takes a number from 1 to ${MAX_ROWS}`);
}

function line({ of, requests, unpriced, usage: tokens, costUsd }: UsageRow, by: readonly UsageKey[]): string {
  const names = by.map((key) => visibleLine(of[key] || "-").padEnd(key === "day" ? 10 : 24));
  const cost = unpriced === requests ? "no price known" : `$${costUsd.toFixed(4)}${unpriced > 0 ? " and more" : ""}`;
  const read = `${tokens.inputTokens} in (${tokens.cachedInputTokens} cached)`;
  return `${names.join("  ")}  ${counted(requests, "request")}  ${read}  ${tokens.outputTokens} out  ${cost}`;
}
