/** What Codex sent, kept in recorded/app-<scenario>.jsonl: one line for the end of the program, then one for each message. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Message } from "./client.ts";
import type { Received, ScenarioSeen } from "./play.ts";

const FOLDER = path.join(import.meta.dirname, "..", "recorded");

type End = Pick<ScenarioSeen, "id" | "exit"> & { readonly clients: readonly string[] };

interface Entry {
  readonly client: string;
  readonly message: Message;
}

export function writeSeen({ id, received, exit }: ScenarioSeen): void {
  const end: End = { id, clients: received.map(({ client }) => client), ...(exit === undefined ? {} : { exit }) };
  const entries = received.flatMap(({ client, messages }) => messages.map((message): Entry => ({ client, message })));
  writeFileSync(fileOf(id), [end, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
}

export function readSeen(id: string): ScenarioSeen {
  const [first = "", ...lines] = readFileSync(fileOf(id), "utf8").split("\n").filter(Boolean);
  const { clients, ...end }: End = JSON.parse(first);
  const entries = lines.map((line): Entry => JSON.parse(line));
  const received = clients.map((client): Received => {
    return { client, messages: entries.filter((entry) => entry.client === client).map(({ message }) => message) };
  });
  return { ...end, received };
}

type Names = Readonly<Record<string, readonly string[]>>;

/** What Codex's schema says a client may call, and the names of the params: `npm run conformance -- methods`. */
export interface RecordedMethods {
  readonly codex: string;
  readonly stable: Names;
  readonly experimental: Names;
  /** Params of stable methods that only clients with `experimentalApi` may send. */
  readonly experimentalParams: Names;
}

const METHODS_FILE = path.join(FOLDER, "methods.json");

export function writeMethods(methods: RecordedMethods): void {
  writeFileSync(METHODS_FILE, `${JSON.stringify(methods, undefined, 2)}\n`);
}

export function readMethods(): RecordedMethods {
  return JSON.parse(readFileSync(METHODS_FILE, "utf8"));
}

function fileOf(id: string): string {
  return path.join(FOLDER, `app-${id}.jsonl`);
}
