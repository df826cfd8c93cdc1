/**
 * What one scenario is: what clients say to `app-server`, what they wait for, and the model behind it. A scenario is data,
 * the same for every program. Words in braces stand for what only a run knows: those of exec-case.ts, {thread} (the first
 * thread a client was told of; {thread2} the second), {turn} (the turn last started) and whatever `keep` names.
 */
import type { Fault } from "@heddle/models/testing";
import type { Step as Answer } from "../exec-case.ts";

/** One thing a client does, or waits for. Clients have names; the first is `a` and is there from the beginning. */
export type Move = { readonly client?: string } & (
  | {
      /** A call; the next move comes after its answer. */
      readonly call: string;
      readonly params?: unknown;
      /** Names for parts of the answer: `{ cursor: "nextCursor" }`. */
      readonly keep?: Readonly<Record<string, string>>;
      /** Nobody waits for the answer. */
      readonly isLeft?: boolean;
    }
  /** A line as it is, or a message without an id. */
  | { readonly say: unknown }
  /** The next notification or question of this method whose params hold `where`; `keep` names parts of them. */
  | { readonly until: string; readonly where?: unknown; readonly keep?: Readonly<Record<string, string>> }
  /** The answer to the oldest question of this method that has none. */
  | { readonly reply: unknown; readonly to: string }
  | { readonly open: string }
  /** The program is killed and started again, with a client of this name. */
  | { readonly restart: string }
  /** The client goes without a word. */
  | { readonly leave: string }
);

export interface Scenario {
  readonly id: string;
  readonly about: string;
  readonly moves: readonly Move[];
  readonly script?: readonly Answer[];
  /** The fault of the nth request; a single one strikes every request. */
  readonly faults?: Fault | readonly (Fault | undefined)[];
  readonly config?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly setUp?: string;
  /** Absent: standard input and output, with one client. */
  readonly door?: "unix";
  /** Words whose place in what the model is sent is compared, request by request. */
  readonly marks?: readonly string[];
  /** Codex itself does not always send these; they are not compared here. */
  readonly unsteady?: readonly string[];
}

const CLIENT_INFO = { name: "probe", title: "Probe", version: "0.0.1" };

export function initialize(options: { readonly client?: string; readonly isExperimental?: boolean } = {}): Move {
  const { client, isExperimental = false } = options;
  const capabilities = isExperimental ? { experimentalApi: true, requestAttestation: false } : null;
  return { call: "initialize", params: { clientInfo: CLIENT_INFO, capabilities }, ...(client ? { client } : {}) };
}

/** A client that is known, and a thread it started. */
export function threadStarted(params: Readonly<Record<string, unknown>> = {}, isExperimental = false): readonly Move[] {
  return [
    initialize({ isExperimental }),
    { say: { method: "initialized" } },
    { call: "thread/start", params: { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write", ...params } },
    { until: "thread/started" },
  ];
}

export function text(words: string): readonly unknown[] {
  return [{ type: "text", text: words }];
}

/** A turn, and what the client waits for; its end unless something else is named. */
export function turn(words: string, until = "turn/completed", more: Readonly<Record<string, unknown>> = {}): Move[] {
  return [{ call: "turn/start", params: { threadId: "{thread}", input: text(words), ...more } }, { until }];
}
