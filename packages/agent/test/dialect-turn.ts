/** A turn for a dialect whose program a test plays itself, message by message: nothing is started and nothing is stored. */
import type { ApprovalQuestion } from "@heddle/protocol";
import { builtInEnvelope, resolveEnvelope } from "@heddle/tools";
import type { ModelCall, ProgramTurn, Wire } from "../src/runners/programs/conversation.ts";
import { createItemLog } from "../src/runners/programs/item-log.ts";
import type { RunnerEvent } from "../src/runners/runner.ts";

const ENVELOPE = resolveEnvelope(builtInEnvelope("edit"), {
  workspace: "/home/dev/project",
  writableRoots: [],
  networkAccess: false,
  networkHosts: undefined,
  approval: "never",
  masked: [],
  mcpServers: [],
  isWatched: false,
  hasClientTools: false,
});

export interface DialectTurn {
  readonly record?: (event: RunnerEvent) => void;
  readonly decide?: (question: ApprovalQuestion) => "accept" | "decline";
  readonly spent?: (call: ModelCall) => void;
  readonly changes?: Partial<ProgramTurn>;
}

export function dialectTurn({ record, decide, spent, changes }: DialectTurn = {}): ProgramTurn {
  const { signal } = new AbortController();
  const io = {
    signal,
    stream: () => undefined,
    record: async (events: readonly RunnerEvent[]) => {
      for (const event of events) record?.(event);
      return [];
    },
  };
  return {
    settings: {
      provider: "x",
      model: "default",
      sandboxMode: "workspace-write",
      networkAccess: false,
      writableRoots: [],
      approvalPolicy: "never",
    },
    envelope: ENVELOPE,
    workspace: "/home/dev/project",
    model: undefined,
    handle: undefined,
    newHandle: "a5350e7a-6892-4c66-973d-fbf1306edde6",
    turnId: "t",
    sandboxLevel: "namespaces",
    version: undefined,
    items: createItemLog("t", io),
    signal,
    connected: async () => undefined,
    spent: async (call) => spent?.(call),
    decide: async (question) => ({ decision: decide?.(question) ?? "accept" }),
    said: async () => undefined,
    unknown: () => undefined,
    declared: () => undefined,
    warn: async () => undefined,
    ...changes,
  };
}

export interface HeardWire extends Wire {
  /** Everything that was sent, oldest first. */
  readonly sent: readonly Readonly<Record<string, unknown>>[];
}

export function heardWire(): HeardWire {
  const sent: Readonly<Record<string, unknown>>[] = [];
  return {
    sent,
    send: async (message) => void sent.push({ ...message }),
    finish: async (text) => void sent.push({ text }),
  };
}

/** Work that needs no event of the system is done. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 50; round += 1) await Promise.resolve();
}
