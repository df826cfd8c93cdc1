/**
 * Gates: a named sequence of guards that leaves its way as a proof, passed or refused. On the way of a hop the proof is in the
 * append of the hop or of its refusal; by itself a gate is run on an idle thread, in the sandbox of the envelope it is in.
 */
import { HeddleError, uuidv7, type By, type Gate, type TurnSettings } from "@heddle/protocol";
import { envelopeHash, gateHash } from "@heddle/tools";
import { appendAt } from "../threads/append-at.ts";
import { requireSound } from "../threads/threads.ts";
import { findEvidence, MAX_FOUND_CHARS, runGuards, type GateProof, type GuardContext } from "./hop-guards.ts";
import { placeOf } from "./judge-request.ts";
import type { HopEngine } from "./thread-hop.ts";

export interface RunGate {
  readonly threadId: string;
  readonly name: string;
  /** The caller may run nothing outside a sandbox. */
  readonly staysInSandbox?: boolean;
}

export interface GateEngine extends HopEngine {
  /** Where the gates of the user are. */
  readonly home: string;
}

/** A gate that was run by itself. */
export interface GateRun {
  readonly isPassed: boolean;
  /** The entry of the evidence. */
  readonly entryId: string;
  readonly proof: Omit<GateProof, "type" | "v">;
}

export async function lookAtGate(gate: Gate, context: GuardContext) {
  const { findings: path } = await runGuards(gate.guards, context);
  const isMet = path.length === gate.guards.length && path.every((one) => one.isMet);
  const proof = proofOf(gate, { path: [...path], isMet, context });
  const last = path.at(-1);
  const how = isMet || last === undefined ? "" : `; ${last.kind}: ${last.found}`;
  const found = `${gate.name}: ${path.filter((one) => one.isMet).length} of ${gate.guards.length} met${how}`;
  const { gateId } = proof;
  return { finding: { kind: "gate", isMet, found: found.slice(0, MAX_FOUND_CHARS), gateId }, proof };
}

interface Way {
  readonly path: GateProof["path"];
  readonly isMet: boolean;
  readonly context: GuardContext;
}

function proofOf(gate: Gate, { path, isMet, context: { envelope, hop, duringTurn } }: Way): GateProof {
  return {
    type: isMet ? "gate.passed" : "gate.refused",
    v: 1,
    gateId: `gate_${uuidv7()}`,
    ...(duringTurn === undefined ? {} : { duringTurn }),
    gate,
    gateHash: gateHash(gate),
    path,
    envelopeHash: envelopeHash(envelope),
    ...(hop === undefined ? {} : { hop }),
  };
}

/** Throws `gate.unknown`, `turn.active` while a turn runs, and what keeps the sandbox from being opened. */
export function runGate(engine: GateEngine, run: RunGate & By): Promise<GateRun> {
  const { threadId } = run;
  return engine.starts.run(threadId, () => runIdle(engine, run).finally(() => engine.wait(threadId)));
}

async function runIdle(engine: GateEngine, run: RunGate & By): Promise<GateRun> {
  const { threadId, by } = run;
  const { journal } = engine;
  const { workspace } = await requireSound(journal, threadId);
  const settings = await engine.settings(threadId);
  if (settings === undefined)
    throw new HeddleError("usage.invalid", `thread ${threadId} has had no turn yet, so it is in no envelope`);
  const { envelopeFolders, gatesBeside, readGates } = await import("@heddle/tools/envelopes");
  const { gate } = readGates(gatesBeside(envelopeFolders(engine.home, workspace))).named(run.name);
  return appendAt(journal, threadId, async (expectedVersion) => {
    if ((await journal.threads.lastTurn(threadId))?.status === "open")
      throw new HeddleError("turn.active", `a turn runs in thread ${threadId}; wait for its end, or interrupt it`);
    const { proof } = await lookAtGate(gate, await contextOf(engine, { ...run, workspace, settings }));
    const { events } = await journal.append({ stream: threadId, author: by, events: [proof], expectedVersion });
    const { type, v: _, ...facts } = proof;
    return { isPassed: type === "gate.passed", entryId: events[0]?.id ?? "", proof: facts };
  });
}

interface Idle extends RunGate {
  readonly workspace: string;
  readonly settings: TurnSettings;
}

async function contextOf(
  engine: HopEngine,
  { threadId, workspace, settings, staysInSandbox }: Idle,
): Promise<GuardContext> {
  const { journal } = engine;
  const { envelope, enteredAt } = await placeOf(journal, threadId);
  if (staysInSandbox === true && envelope.sandbox === "off")
    throw new HeddleError("door.forbidden", `${envelope.id} has no sandbox; only the owner can run a gate there`);
  const { sandbox, state } = await engine.enter({ threadId, workspace, settings });
  return {
    threadId,
    workspace,
    envelope,
    enteredAt,
    sandbox,
    environment: state.environment,
    findEvidence: findEvidence(journal),
    // Each guard has a time limit of its own.
    signal: new AbortController().signal,
  };
}
