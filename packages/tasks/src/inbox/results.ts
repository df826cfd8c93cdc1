/** Answers to orders, as files beside them: `fix.status.md` while the task runs, `fix.result.md` at its end. */
import {
  defined,
  hasEnded,
  isHeddleError,
  visibleLine,
  visibleText,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import { stringify } from "yaml";
import { pathBelow, type InboxFolder } from "./inbox-folder.ts";
import { answerPath, endingOf } from "./order-names.ts";

/** More answers to orders of one name than anybody keeps; then the last one is overwritten. */
const MAX_NUMBER = 999;
const MAX_ANSWER_BYTES = 1024 * 1024;

export function orderPathOf({ source }: TaskRecord, root: string): string | undefined {
  if (source.kind !== "inbox" || source.ref === undefined) return undefined;
  return pathBelow(root, source.ref);
}

/** True: the task's end was written. */
export async function answer(
  inbox: InboxFolder,
  task: TaskRecord,
  event: StoredEvent<TaskEventBody>,
): Promise<boolean> {
  const order = orderPathOf(task, inbox.root);
  if (order === undefined || !isNews(task, event.body)) return false;
  const bytes = await written(task, event.at, order);
  if (!hasEnded(task)) {
    await put(inbox, { order, what: "status", task, bytes });
    return false;
  }
  await put(inbox, { order, what: "result", task, bytes });
  const status = await find(inbox, { order, what: "status", task });
  if (status.isOwn) await inbox.delete(status.path);
  return true;
}

/** Skips events that change nothing for the reader. */
function isNews({ state }: TaskRecord, { type }: TaskEventBody): boolean {
  switch (type) {
    case "task.created":
    case "task.progressed":
    case "task.budget-warned":
    case "task.prepared":
    case "task.checked":
    case "task.stall-acted":
    case "task.archived":
    case "task.deleted":
      return false;
    case "task.turn-ended":
    case "task.prompted":
      return state === "running";
    default:
      return true;
  }
}

interface Answering {
  readonly order: string;
  readonly what: "status" | "result";
  readonly task: TaskRecord;
}

async function put(
  inbox: InboxFolder,
  { bytes, ...answering }: Answering & { readonly bytes: string | Uint8Array },
): Promise<void> {
  const { path: target } = await find(inbox, answering);
  await inbox.upload(target, bytes);
}

/** The file of this task, or the first free name: an earlier order of the same name keeps its answer. */
async function find(
  inbox: InboxFolder,
  { order, what, task }: Answering,
): Promise<{ readonly path: string; readonly isOwn: boolean }> {
  for (let number = 0; ; number += 1) {
    const candidate = answerPath(order, what, number);
    const there = await bytesAt(inbox, candidate);
    const isOwn = there !== undefined && Buffer.from(there).includes(task.id);
    if (there === undefined || isOwn || number === MAX_NUMBER) return { path: candidate, isOwn };
  }
}

/** Something too large, or not a file, belongs to somebody else: treated as empty. */
async function bytesAt(inbox: InboxFolder, at: string): Promise<Uint8Array | undefined> {
  try {
    return (await inbox.download(at, MAX_ANSWER_BYTES))?.bytes;
  } catch (error) {
    if (isHeddleError(error)) return new Uint8Array();
    throw error;
  }
}

async function written(task: TaskRecord, at: number, order: string): Promise<string | Uint8Array> {
  const facts = factsOf(task, at);
  switch (endingOf(order)) {
    case ".json":
      return `${JSON.stringify(facts, undefined, 2)}\n`;
    case ".yaml":
    case ".yml":
      return stringify(facts);
    case ".docx": {
      const { writeDocument } = await import("./docx/write-document.ts");
      return writeDocument(facts);
    }
    default:
      return page(task, facts);
  }
}

function factsOf(task: TaskRecord, at: number): Readonly<Record<string, unknown>> {
  const { lastCheck, spent } = task;
  return {
    schema_version: "1.0",
    task_id: task.id,
    task_name: task.spec.name,
    status: task.state,
    verified: task.state === "verified",
    timestamp: new Date(at).toISOString(),
    ...defined({ summary: task.claim?.summary, reason: task.reason, waits_for: task.wait?.message }),
    ...defined({ thread: task.threadId, workspace: task.folder ?? task.spec.workspace, merged: task.merged }),
    ...(lastCheck === undefined
      ? {}
      : {
          checks: lastCheck.results.map(({ name, outcome, message }) => ({ name, outcome, message })),
          violations: lastCheck.violations.map(({ message }) => message),
        }),
    spent: {
      turns: spent.turns,
      tokens: spent.tokens,
      seconds: Math.round(spent.timeMs / 1000),
      // A partial cost would look like the whole cost.
      cost_usd: spent.isCostPartial ? null : spent.costUsd,
    },
  };
}

/** Text of the agent is quoted, so that no line of it looks like a heading or a check of this page. */
function quotedLines(text: string): readonly string[] {
  return visibleText(text)
    .split("\n")
    .map((line) => `> ${line}`.trimEnd());
}

function page(task: TaskRecord, facts: Readonly<Record<string, unknown>>): string {
  const { checks: _, violations: __, summary: ___, ...front } = facts;
  const { lastCheck, claim } = task;
  const lines = [
    `# ${visibleLine(task.spec.name)}: ${task.state}`,
    "",
    ...(task.state === "claimed" ? ["Reported as done. Nothing has checked it.", ""] : []),
    ...(claim === undefined ? [] : [...quotedLines(claim.summary), ""]),
    ...(task.reason === undefined ? [] : [...quotedLines(task.reason), ""]),
    ...(lastCheck === undefined
      ? []
      : [
          "## Checks",
          "",
          ...lastCheck.results.map(
            ({ name, outcome, message }) =>
              `- ${outcome}: ${visibleLine(name)}${message === "" ? "" : ` (${visibleLine(message)})`}`,
          ),
          ...lastCheck.violations.map(({ message }) => `- violation: ${visibleLine(message)}`),
          "",
        ]),
  ];
  return `---\n${stringify(front)}---\n\n${lines.join("\n")}`;
}
