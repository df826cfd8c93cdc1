/** Events and homes for tests. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NO_USAGE, type Envelope, type EventOf } from "@heddle/protocol";

export const created: EventOf<"thread.created"> = { type: "thread.created", v: 1, workspace: "/w", origin: "exec" };

export function admitted(turnId: string): EventOf<"turn.admitted"> {
  return {
    type: "turn.admitted",
    v: 1,
    turnId,
    input: [{ type: "text", text: `do ${turnId}` }],
    settings: {
      provider: "scripted",
      model: "m",
      sandboxMode: "read-only",
      networkAccess: false,
      writableRoots: [],
      approvalPolicy: "never",
    },
    holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" },
  };
}

export function said(text: string, turnId = "t"): EventOf<"item.completed"> {
  return { type: "item.completed", v: 1, turnId, item: { type: "agentMessage", id: `item ${text}`, text } };
}

export function completed(turnId: string, failureCode?: string): EventOf<"turn.completed"> {
  return {
    type: "turn.completed",
    v: 1,
    turnId,
    status: failureCode === undefined ? "completed" : "failed",
    ...(failureCode === undefined ? {} : { failure: { code: failureCode, message: "it failed" } }),
    usage: NO_USAGE,
    durationMs: 1,
  };
}

export function envelope(id: string): Envelope {
  const nothing = { tools: [], effects: [], writeRoots: [], masked: [] };
  return { id, ...nothing, network: "none", sandbox: "required", approval: "never" };
}

export function entered(id: string, more: Partial<EventOf<"envelope.entered">> = {}): EventOf<"envelope.entered"> {
  const named = { envelope: envelope(id), envelopeHash: `#${id}` };
  return { type: "envelope.entered", v: 1, cause: "start", ...named, sandboxLevel: "none", depth: 0, ...more };
}

export interface TestHome extends AsyncDisposable {
  readonly path: string;
}

/** A folder of its own, gone after the test. `parent` for tests that need a certain file system. */
export async function testHome(parent = tmpdir()): Promise<TestHome> {
  const folder = await mkdtemp(join(parent, "heddle-journal-"));
  return {
    path: join(folder, "home"),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const SCHEMA_1 = join(import.meta.dirname, "..", "..", "test", "schema-1");

/** A home as a Heddle of schema 1 has left it. */
export function putSchema1(home: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  using db = new DatabaseSync(join(home, "heddle.db"));
  db.exec("PRAGMA journal_mode = WAL");
  db.exec(readFileSync(join(SCHEMA_1, "store.sql"), "utf8"));
  for (const name of ["checkpoints", "keys"]) cpSync(join(SCHEMA_1, name), join(home, name), { recursive: true });
  writeFileSync(join(home, "witness.log"), readFileSync(join(SCHEMA_1, "witness.txt")));
}
