/**
 * The story of a run as rows: items of the thread, under the turn they belong to, with what the harness did in between: the
 * claim, the round of checks, a stall where it happened. Pure, so that it can be tested without a browser.
 */
import type { Item, StreamedEvent, TaskAttempt, Turn } from "@heddle/protocol/http";
import { PROMPT_WORDS } from "@heddle/protocol/task-words";

export interface Entry {
  readonly seq: number;
  readonly turnId: string;
  readonly item: Item;
  readonly startedAt: number;
  readonly completedAt?: number | undefined;
}

type EventOfType<T extends StreamedEvent["body"]["type"]> = Extract<StreamedEvent["body"], { type: T }>;

export type Row =
  | {
      readonly kind: "turn";
      readonly key: string;
      readonly at: number;
      readonly turn: Turn;
      readonly number: number;
      readonly why: string;
    }
  | { readonly kind: "item"; readonly key: string; readonly at: number; readonly entry: Entry }
  | { readonly kind: "claim"; readonly key: string; readonly at: number; readonly claim: EventOfType<"task.claimed"> }
  | { readonly kind: "checks"; readonly key: string; readonly at: number; readonly checks: EventOfType<"task.checked"> }
  | {
      readonly kind: "stall";
      readonly key: string;
      readonly at: number;
      readonly stall: EventOfType<"task.stalled">;
      readonly acts: readonly {
        readonly at: number;
        readonly author: string;
        readonly act: EventOfType<"task.stall-acted">;
      }[];
      readonly recoveredAt: number | undefined;
    }
  | {
      readonly kind: "note";
      readonly key: string;
      readonly at: number;
      readonly tone: "no" | "say" | "ok" | "fg2";
      readonly text: string;
      readonly author: string;
    };

export interface Story {
  readonly items: readonly Entry[];
  readonly turns: readonly Turn[];
  readonly log: readonly StreamedEvent[];
  readonly attempts: readonly TaskAttempt[];
}

export function rowsOf({ items, turns, log, attempts }: Story): readonly Row[] {
  const oldest = turns.toSorted((a, b) => a.seq - b.seq);
  const turnRows = oldest.map((turn, index): Row => ({
    kind: "turn",
    key: turn.id,
    at: turn.admittedAt,
    turn,
    number: index + 1,
    why: whyOf(turn, attempts),
  }));
  const itemRows = items
    .filter(({ item }) => item.type !== "userMessage" || !isPrompt(item, oldest))
    .map((entry): Row => ({ kind: "item", key: entry.item.id, at: entry.startedAt, entry }));
  const order: Readonly<Record<Row["kind"], number>> = { turn: 0, item: 1, stall: 2, claim: 3, checks: 4, note: 5 };
  return [...turnRows, ...itemRows, ...harnessRows(log)].toSorted(
    (a, b) => a.at - b.at || order[a.kind] - order[b.kind] || seqOf(a) - seqOf(b),
  );
}

function seqOf(row: Row): number {
  return row.kind === "item" ? row.entry.seq : 0;
}

/** The input of a turn is its heading, not one of its steps. */
function isPrompt(item: Item, turns: readonly Turn[]): boolean {
  if (item.type !== "userMessage") return false;
  const text = textOf(item.content);
  return turns.some(({ input }) => textOf(input) === text);
}

function textOf(parts: Turn["input"]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n");
}

/** The harness's own turns are never shown as the user's. */
function whyOf(turn: Turn, attempts: readonly TaskAttempt[]): string {
  const round = Number(/\.(\d+)$/.exec(turn.clientId ?? "")?.[1]);
  const prompt = attempts.flatMap(({ prompts }) => prompts).find((one) => one.round === round);
  if (prompt !== undefined && turn.clientId?.startsWith("task_") === true) return PROMPT_WORDS[prompt.why];
  return turn.by === "system" ? "started by Heddle" : `started by ${whoIs(turn.by)}`;
}

/** `user:NAME` of a principal, `agent:…`, `system`. */
export function whoIs(author: string): string {
  if (author === "system") return "Heddle";
  if (author === "user" || author === "user:owner") return "the owner";
  if (author.startsWith("user:")) return author.slice(5);
  return author.startsWith("agent") ? "the agent" : author;
}

function harnessRows(log: readonly StreamedEvent[]): readonly Row[] {
  return log.flatMap((event, index): readonly Row[] => {
    const { body, at, id, author } = event;
    switch (body.type) {
      case "task.claimed":
        return [{ kind: "claim", key: id, at, claim: body }];
      case "task.checked":
        return [{ kind: "checks", key: id, at, checks: body }];
      case "task.stalled":
        return [
          {
            kind: "stall",
            key: id,
            at: at - body.quietMs,
            stall: body,
            ...afterStall(log.slice(index + 1), body.episode),
          },
        ];
      default: {
        const said = noteOf(body);
        return said === undefined ? [] : [{ kind: "note", key: id, at, author, ...said }];
      }
    }
  });
}

type StallEnd = Pick<Extract<Row, { kind: "stall" }>, "acts" | "recoveredAt">;

function afterStall(later: readonly StreamedEvent[], episode: number): StallEnd {
  const acts = later.flatMap(({ at, author, body }) =>
    body.type === "task.stall-acted" && body.episode === episode ? [{ at, author, act: body }] : [],
  );
  const recovered = later.find(({ body }) => body.type === "task.recovered" && body.episode === episode);
  return { acts, recoveredAt: recovered?.at };
}

function noteOf(body: StreamedEvent["body"]): Pick<Extract<Row, { kind: "note" }>, "tone" | "text"> | undefined {
  switch (body.type) {
    case "task.verified":
      return { tone: "ok", text: "Verified: every check passed" };
    case "task.merged":
      return { tone: "fg2", text: `Merged as ${body.how}: ${body.ref}` };
    case "task.paused":
      return { tone: "say", text: `Paused: ${body.message}` };
    case "task.resumed":
      return {
        tone: "fg2",
        text: `Resumed${
          body.budget === undefined
            ? ""
            : `, with more ${Object.entries(body.budget)
                .map(([what, more]) => `${what} ${more}`)
                .join(", ")}`
        }`,
      };
    case "task.failed":
      return { tone: "no", text: `Failed: ${body.failure.message}` };
    case "task.retried":
      return { tone: "fg2", text: `Another attempt: ${body.reason}` };
    case "task.cancelled":
      return { tone: "fg2", text: `Cancelled: ${body.reason}` };
    case "task.undone":
      return { tone: "say", text: `The workspace was reverted: ${body.files} files` };
    case "task.budget-warned":
      return { tone: "say", text: `The budget of ${body.what} is nearly used: ${body.spent} of ${body.limit}` };
    default:
      return undefined;
  }
}

export function isError(row: Row): boolean {
  switch (row.kind) {
    case "item": {
      const { item } = row.entry;
      if (item.type === "commandExecution" && item.exitCode !== undefined && item.exitCode !== 0) return true;
      if (item.type === "notice") return item.level === "error";
      return "status" in item && ["failed", "declined", "unknown", "interrupted"].includes(item.status);
    }
    case "checks":
      return !row.checks.passed;
    case "stall":
      return true;
    case "note":
      return row.tone === "no";
    default:
      return false;
  }
}

/** What did something, apart from what only says something. */
export function isAct(row: Row): boolean {
  if (row.kind !== "item") return row.kind !== "turn";
  return !["agentMessage", "reasoning", "plan", "userMessage"].includes(row.entry.item.type);
}

/** What has changed files since the checks ran, or may have. */
export interface SinceChecks {
  readonly edits: number;
  readonly commands: number;
  readonly isRunning: boolean;
}

export function sinceChecks(items: readonly Entry[], checkedAt: number): SinceChecks {
  const after = items.filter(
    ({ startedAt, completedAt = Number.POSITIVE_INFINITY }) =>
      Math.max(startedAt, Math.min(completedAt, startedAt + 1)) > checkedAt,
  );
  const commands = after.filter(({ item }) => item.type === "commandExecution");
  return {
    edits: after.reduce(
      (sum, { item }) => sum + (item.type === "fileChange" && item.status !== "declined" ? item.changes.length : 0),
      0,
    ),
    commands: commands.length,
    isRunning: commands.some(({ completedAt }) => completedAt === undefined),
  };
}
