/** Events of turns in envelopes, for tests: as a dispatch would write them, right or wrong. */
import { createHash } from "node:crypto";
import { canonical, type Author, type Envelope, type EventBody } from "@heddle/protocol";
import type { Entry } from "../replay/facts.ts";
import { createReplay, type ReplayReport } from "../replay/replay.ts";
import { admitted, completed } from "./journal.samples.ts";

export const EXPLORE: Envelope = {
  id: "explore",
  tools: ["read", "list", "grep", "bash", "mcp.notes.*"],
  effects: ["read", "exec"],
  writeRoots: [],
  masked: ["/home/me/.heddle"],
  network: "none",
  sandbox: "required",
  approval: "never",
};

export const EDIT: Envelope = {
  ...EXPLORE,
  id: "edit",
  tools: [...EXPLORE.tools, "edit", "write", "apply_patch"],
  effects: ["read", "write", "exec"],
  writeRoots: ["/w"],
};

export function hashOf(envelope: Envelope): string {
  return createHash("sha256").update(canonical(envelope)).digest("hex");
}

export function started(turnId: string, envelope: Envelope): EventBody {
  return {
    type: "turn.started",
    v: 1,
    turnId,
    runner: "embedded",
    sandboxLevel: "none",
    envelope,
    envelopeHash: hashOf(envelope),
  };
}

/** By whom, and what. An event alone is by the agent. */
export type Step = EventBody | readonly [author: string, event: Record<string, unknown>];

export interface Call {
  readonly tool: string;
  readonly args?: unknown;
  readonly turnId?: string;
  readonly callId?: string;
  readonly isReadOnly?: boolean;
  readonly outcome?: "ok" | "failed" | "denied" | "cancelled" | "unknown";
}

export function intended({ tool, args = {}, turnId = "t1", callId = "c1", isReadOnly = false }: Call): EventBody {
  return { type: "tool.intended", v: 1, turnId, callId, itemId: `i ${callId}`, tool, arguments: args, isReadOnly };
}

export function settled({ tool, turnId = "t1", callId = "c1", outcome = "ok" }: Call): EventBody {
  return { type: "tool.settled", v: 1, turnId, callId, itemId: `i ${callId}`, tool, outcome, output: [] };
}

export const ran = (call: Call): readonly Step[] => [intended(call), settled(call)];

export const thread: Step = ["user:owner", { type: "thread.created", v: 1, workspace: "/w", origin: "exec" }];

/** One turn in one envelope. */
export function turnIn(envelope: Envelope, ...steps: readonly Step[]): readonly Step[] {
  return [thread, admitted("t1"), ["system", started("t1", envelope)], ...steps, completed("t1")];
}

export function authorOf(step: Step): Author {
  return (isAuthored(step) ? step[0] : "agent:embedded") as Author;
}

export function bodyOfStep(step: Step): EventBody {
  return (isAuthored(step) ? step[1] : step) as EventBody;
}

function isAuthored(step: Step): step is readonly [string, Record<string, unknown>] {
  return Array.isArray(step);
}

export function replayed(steps: readonly Step[], change: (entry: Entry) => Entry = (entry) => entry): ReplayReport {
  const replay = createReplay();
  for (const [index, step] of steps.entries()) {
    const body = bodyOfStep(step);
    const entry = {
      stream: "thr",
      version: index + 1,
      at: 1000 + index,
      author: authorOf(step),
      type: body.type,
      body,
    };
    replay.take(change(entry));
  }
  return replay.end();
}

export function codes({
  findings,
}: Pick<ReplayReport, "findings">): readonly (readonly [string, number | undefined])[] {
  return findings.map(({ code, version }) => [code, version] as const);
}

/** Of a test that is named after what a verification finds. */
export function codeIn(name: string): string {
  return name.slice("Verify: ".length);
}
