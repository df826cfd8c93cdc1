/** What real programs were recorded to say, through their dialects: the items and the end of each of their turns. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isHeddleError, type Item } from "@heddle/protocol";
import { expect, test } from "vitest";
import { z } from "zod";
import { acpDialect } from "./acp.ts";
import { claudeDialect } from "./claude.ts";
import { codexDialect } from "./codex.ts";
import { codexExecDialect } from "./codex-exec.ts";
import { openCodeDialect } from "./opencode.ts";
import type { Conversation, Dialect, KnownHandle, NativeOutcome } from "./conversation.ts";
import { dialectTurn, heardWire, settled } from "../../../test/dialect-turn.ts";

interface Line {
  readonly k: string;
  readonly m: Readonly<Record<string, unknown>> | string;
}

function linesOf(name: string): readonly Line[] {
  return readFileSync(recorded(name), "utf8")
    .trim()
    .split("\n")
    .map((line): Line => JSON.parse(line));
}

function recorded(name: string): string {
  return join(import.meta.dirname, "../../../test/recorded", `${name}.jsonl`);
}

interface Played {
  readonly scenario: string;
  readonly items: readonly string[];
  readonly end: string;
}

/** Ids of the recording become those of this run. */
async function play(lines: readonly Line[], dialect: Dialect): Promise<readonly Played[]> {
  const ids = new Map<string, string>();
  const sent: Readonly<Record<string, unknown>>[] = [];
  const counts = new Map<string, number>();
  const ended: Item[] = [];
  const turn = dialectTurn({
    record: (event) => void (event.type === "item.completed" && ended.push(event.item)),
    decide: (question) => (/\bnever\b|rm -f/.test(JSON.stringify(question)) ? "decline" : "accept"),
    changes: { handle: loadedIn(lines) },
  });
  const wire = { send: async (message: object) => void sent.push({ ...message }), finish: async () => undefined };
  const conversation = dialect.open(wire, turn);
  const played: Played[] = [];
  let scenario = "";
  let prompted: Promise<NativeOutcome> | undefined;

  async function finish(): Promise<void> {
    if (prompted === undefined) return;
    // Some programs are ended before they have told how their turn ended.
    const end = await Promise.race([prompted.then(endText), settled().then(() => "not told")]);
    played.push({ scenario, items: ended.splice(0).map(shown), end });
    prompted = undefined;
  }

  for (const { k, m } of lines) {
    if (k === "scenario") {
      await finish();
      scenario = typeof m === "string" ? m : "";
      if (dialect.isPerPrompt === true) {
        await conversation.begin();
        prompted = conversation.prompt([{ type: "text", text: scenario }], undefined);
        await settled();
      }
    } else if (k === "in" && typeof m === "object") {
      prompted = speak(conversation, m, { scenario, isRunning: prompted !== undefined }) ?? prompted;
      await settled();
      const kind = kindOf(m);
      const count = counts.get(kind) ?? 0;
      counts.set(kind, count + 1);
      const own = sent.filter((message) => kindOf(message) === kind)[count];
      for (const key of ["id", "uuid", "request_id"]) {
        if (kind !== "" && m[key] !== undefined && own?.[key] !== undefined)
          ids.set(JSON.stringify(m[key]), JSON.stringify(own[key]));
      }
    } else if (k === "out" && typeof m === "object") {
      await conversation.receive(renamed(m, ids));
      await settled();
    }
  }
  await finish();
  return played;
}

/** The session that an ACP agent was told to continue when it began. */
function loadedIn(lines: readonly Line[]): KnownHandle | undefined {
  const opening = lines.find(({ k, m }) => k === "in" && Opening.safeParse(m).success);
  const { sessionId } = Opening.safeParse(opening?.m).data?.params ?? {};
  return sessionId === undefined ? undefined : { id: sessionId, isOfOther: false };
}

const Opening = z.object({
  method: z.enum(["session/new", "session/load", "session/resume"]),
  params: z.object({ sessionId: z.string().optional() }),
});

/** What a message asks; of an answer nothing. */
function kindOf({ method, type, request }: Readonly<Record<string, unknown>>): string {
  if (typeof request === "object" && request !== null && "subtype" in request) return String(request.subtype);
  return typeof method === "string" ? method : type === "user" ? "user" : "";
}

/** Undefined: it begins no prompt. */
function speak(
  conversation: Conversation,
  message: Readonly<Record<string, unknown>>,
  { scenario, isRunning }: { readonly scenario: string; readonly isRunning: boolean },
): Promise<NativeOutcome> | undefined {
  const kind = message["method"] ?? message["type"];
  const input = [{ type: "text", text: scenario }] as const;
  const isStop =
    kind === "session/cancel" || kind === "turn/interrupt" || JSON.stringify(message).includes('"subtype":"interrupt"');
  if (kind === "initialize" || JSON.stringify(message).includes('"subtype":"initialize"'))
    conversation.begin().catch(() => undefined);
  else if (isStop) conversation.interrupt().catch(() => undefined);
  else if (kind === "turn/steer" || (kind === "user" && isRunning)) conversation.steer(input).catch(() => undefined);
  else if (kind === "session/prompt" || kind === "turn/start" || kind === "user")
    return conversation.prompt(input, undefined);
  return undefined;
}

function renamed(message: Readonly<Record<string, unknown>>, ids: ReadonlyMap<string, string>): unknown {
  // An id that the program chose itself stays.
  const isAnswer = message["method"] === undefined;
  const keys = [...(isAnswer ? ["id"] : []), "command_uuid", "uuid"];
  const text = JSON.stringify(message);
  const request = /"response":\{"subtype":"\w+","request_id":("[^"]+")/.exec(text)?.[1];
  const named = request === undefined ? text : text.replace(request, ids.get(request) ?? request);
  const changed: Record<string, unknown> = JSON.parse(named);
  for (const key of keys) {
    const ours = ids.get(JSON.stringify(changed[key]));
    if (ours !== undefined) changed[key] = JSON.parse(ours);
  }
  return changed;
}

function shown(item: Item): string {
  if (item.type === "agentMessage") return `message ${item.text}`;
  if (item.type === "reasoning") return `reasoning ${item.summary.join("").replaceAll("\n", " ")}`;
  if (item.type === "commandExecution")
    return `command ${item.status} ${item.exitCode ?? "-"} ${JSON.stringify(item.output)}`;
  if (item.type === "fileChange")
    return `files ${item.status} ${item.changes.map(({ kind, diff }) => `${kind} ${JSON.stringify(diff)}`).join()}`;
  return `${item.type} ${"status" in item ? item.status : ""}`;
}

function endText(end: NativeOutcome): string {
  if (end.kind !== "failed") return `${end.kind} ${end.native.reason} ${end.native.confidence}`;
  return `failed ${isHeddleError(end.error) ? end.error.code : ""}`;
}

test.each([
  ["claude-stream-json", claudeDialect],
  ["acp-gemini", acpDialect],
  ["acp-opencode", acpDialect],
  ["acp-copilot", acpDialect],
] as const)("%s: every turn has its items once, and an end", async (name, dialect) => {
  expect(await play(linesOf(name), dialect)).toMatchSnapshot();
});

/** Written by `npm run conformance -- runners --record`; each turn is of a process of its own. */
test.each([
  ["suite-claude", claudeDialect],
  ["suite-codex", codexDialect],
  ["suite-codex-exec", codexExecDialect],
  ["suite-claude-acp", acpDialect],
  ["suite-codex-acp", acpDialect],
  ["suite-copilot", acpDialect],
  ["suite-qwen", acpDialect],
  ["suite-gemini", acpDialect],
] as const)("%s: every turn has its items once, and an end", async (name, dialect) => {
  const lines = linesOf(name);
  const begins = lines.flatMap(({ k }, at) => (k === "scenario" ? [at] : []));
  const played: Played[] = [];
  for (const [nth, at] of begins.entries())
    played.push(...(await play(lines.slice(at, begins[nth + 1] ?? lines.length), dialect)));
  expect(played).toHaveLength(begins.length);
  expect(played).toMatchSnapshot();
});

/** It has one prompt, and nothing else is sent to it. */
test.each(["codex-exec-json", "codex-exec-patch", "codex-exec-http500", "codex-exec-stream-drop"])(
  "%s: every item once, what it used, and an end",
  async (name) => {
    const items: string[] = [];
    const told: string[] = [];
    const turn = dialectTurn({
      record: (event) => void (event.type === "item.completed" && items.push(shown(event.item))),
      spent: ({ text, usage }) => void told.push(`spent ${usage.inputTokens} ${usage.outputTokens} ${text}`),
      changes: {
        connected: async ({ handle, origin }) => void told.push(`${origin} ${handle}`),
        warn: async (code, message) => void told.push(`warned ${code} ${message}`),
        unknown: (kind) => void told.push(`unknown ${kind}`),
      },
    });
    const conversation = codexExecDialect.open(heardWire(), turn);
    expect(await conversation.begin()).toBe("knows");
    const prompted = conversation.prompt([{ type: "text", text: "do it" }], undefined);
    for (const line of readFileSync(recorded(name), "utf8").trim().split("\n"))
      await conversation.receive(JSON.parse(line));
    expect({ items, told, end: endText(await prompted) }).toMatchSnapshot();
  },
);

/** Requests are answered as they were; a prompt while another one runs is not sent by Heddle. */
test("opencode-serve: every turn has its items once, and an end", async () => {
  const played: Played[] = [];
  const items: string[] = [];
  const spent: number[] = [];
  const replies: unknown[] = [];
  const turn = dialectTurn({
    record: (event) => void (event.type === "item.completed" && items.push(shown(event.item))),
    decide: (question) => (/rm -f/.test(JSON.stringify(question)) ? "decline" : "accept"),
    spent: ({ usage }) => void spent.push(usage.inputTokens, usage.outputTokens),
    changes: { unknown: (kind) => void items.push(`unknown ${kind}`) },
  });
  const lines = readFileSync(recorded("opencode-serve"), "utf8").trim().split("\n");
  const wire = {
    finish: async () => undefined,
    async send(message: { readonly id?: number; readonly path?: string; readonly body?: object }) {
      if (message.path?.endsWith("/reply") === true) replies.push(message.body);
      const body = message.path === "/session" ? { id: "ses_e2208a9feffeyOBqnJVNNdQfje" } : true;
      if (message.id !== undefined) await conversation.receive({ id: message.id, status: 200, body });
    },
  };
  const conversation = openCodeDialect.open(wire, turn);
  await conversation.receive({ ready: "1.18.33" });
  expect(await conversation.begin()).toBe("knows");
  let scenario = "";
  let isBusy = false;
  for (const line of lines) {
    const { k, n, path, ev } = JSON.parse(line);
    if (k === "scenario") scenario = n;
    else if (k === "sse") await conversation.receive({ event: ev });
    else if (k === "http" && path.endsWith("/abort")) await conversation.interrupt();
    else if (k === "http" && path.endsWith("/prompt_async") && !isBusy) {
      isBusy = true;
      const name = scenario;
      conversation.prompt([{ type: "text", text: name }], undefined).then(
        (end) => {
          isBusy = false;
          played.push({ scenario: name, items: items.splice(0), end: endText(end) });
        },
        () => undefined,
      );
    }
    await settled();
  }
  expect({ played, spent, replies }).toMatchSnapshot();
});
