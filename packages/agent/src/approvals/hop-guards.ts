/**
 * The guards of an edge. Heddle looks itself: at files, at the exit code of a command in the sandbox of the envelope that is
 * left, at evidence, at the outcome. A guard that cannot be evaluated is not met. The first that is not met ends the look.
 */
import { lstat, realpath } from "node:fs/promises";
import path from "node:path";
import {
  errorCodeOf,
  never,
  reasonOf,
  type Envelope,
  type EventOf,
  type EvidenceEntry,
  type EvidenceQuery,
  type GuardFinding,
  type HopGuard,
  type PlainGuard,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { CappedOutput, startCommand, type Sandbox } from "@heddle/tools";
import { boundedMatcher } from "../turns/bounded-match.ts";
import { parseJsonSchema } from "../turns/json-schema.ts";

export type GateProof = EventOf<"gate.passed" | "gate.refused">;

/** The entries that a query finds, at most as many as it is asked for; it throws where it cannot tell. */
type FindEvidence = (query: EvidenceQuery) => Promise<readonly Pick<EvidenceEntry, "id">[]>;

export function findEvidence({ evidence }: Pick<Journal, "evidence">): FindEvidence {
  return async (query) => (await evidence.query(query)).entries;
}

export interface GuardContext {
  readonly threadId: string;
  readonly workspace: string;
  /** The envelope that is left, and its sandbox. */
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
  readonly environment: Readonly<Record<string, string>>;
  /** Milliseconds since 1970 when the envelope was entered. */
  readonly enteredAt: number;
  /** Absent: the hop carries none. */
  readonly outcome?: unknown;
  readonly findEvidence: FindEvidence;
  readonly signal: AbortSignal;
  /** Named in the proofs of gates. */
  readonly duringTurn?: string | undefined;
  readonly hop?: GateProof["hop"];
}

/** Guards that need longer say so. */
const DEFAULT_COMMAND_MS = 60_000;
/** The end of what a command prints is enough to see why it failed. */
const KEPT_OUTPUT = { headBytes: 0, tailBytes: 4096 } as const;
export const MAX_FOUND_CHARS = 500;
/** Enough to follow; a query can be asked again. */
const MAX_ENTRIES = 32;

export interface Looked {
  readonly findings: readonly GuardFinding[];
  /** Of the gates among the guards, to be recorded with what the look is for. */
  readonly proofs: readonly GateProof[];
}

export async function runGuards(guards: readonly HopGuard[], context: GuardContext): Promise<Looked> {
  const findings: GuardFinding[] = [];
  const proofs: GateProof[] = [];
  for (const guard of guards) {
    const { finding, proof } = await look(guard, context);
    findings.push(finding);
    if (proof !== undefined) proofs.push(proof);
    if (!finding.isMet) break;
  }
  return { findings, proofs };
}

interface LookedAt {
  readonly finding: GuardFinding;
  readonly proof?: GateProof;
}

async function look(guard: HopGuard, context: GuardContext): Promise<LookedAt> {
  if (guard.kind === "gate") {
    const { name, guards } = guard;
    const found = "its guards are not known";
    if (guards === undefined) return { finding: { kind: "gate", isMet: false, found: `${name}: ${found}` } };
    const { lookAtGate } = await import("./gates.ts");
    return lookAtGate({ name, guards }, context);
  }
  try {
    const { found, ...more } = await evaluate(guard, context);
    return { finding: { kind: guard.kind, ...more, found: found.slice(0, MAX_FOUND_CHARS) } };
  } catch (error) {
    // A turn that is being stopped has no finding: nothing was looked at to its end.
    context.signal.throwIfAborted();
    const found = `not evaluated: ${reasonOf(error)}`.slice(0, MAX_FOUND_CHARS);
    return { finding: { kind: guard.kind, isMet: false, found } };
  }
}

type Found = Omit<GuardFinding, "kind">;

async function evaluate(guard: PlainGuard, context: GuardContext): Promise<Found> {
  switch (guard.kind) {
    case "command":
      return runCommand(guard, context);
    case "files":
      return lookAtFiles(guard, context);
    case "evidence":
      return findEntries(guard, context);
    case "outcome":
      return judgeOutcome(context);
    default:
      return never(guard);
  }
}

type GuardOf<K extends PlainGuard["kind"]> = Extract<PlainGuard, { readonly kind: K }>;

async function runCommand(
  { command, exitCode: expected = 0, timeoutMs = DEFAULT_COMMAND_MS }: GuardOf<"command">,
  { sandbox, workspace, environment, signal }: GuardContext,
): Promise<Found> {
  const output = new CappedOutput(KEPT_OUTPUT);
  await using owned = await startCommand({
    sandbox,
    argv: command,
    cwd: workspace,
    env: environment,
    stdin: "ignore",
    output,
    signal,
    timeoutMs,
  });
  const { cause, exitCode, signal: by } = await owned.exited;
  await output.close();
  if (cause === "timeout") return { isMet: false, found: `it did not end in ${timeoutMs} ms` };
  signal.throwIfAborted();
  const last = output.snapshot().text.trimEnd().split("\n").at(-1) ?? "";
  const ended = exitCode === undefined ? `ended by ${by ?? "a signal"}` : `exit code ${exitCode}`;
  const isMet = exitCode === expected;
  const expectation = isMet || expected === 0 ? "" : ` instead of ${expected}`;
  return { isMet, found: `${ended}${expectation}${last === "" ? "" : `: ${last}`}` };
}

async function lookAtFiles(
  { exist = [], absent = [] }: GuardOf<"files">,
  { workspace, envelope }: GuardContext,
): Promise<Found> {
  if (exist.length + absent.length === 0) return { isMet: false, found: "it names no file" };
  for (const name of exist) {
    const problem = await whyNotThere(name, { workspace, envelope });
    if (problem !== undefined) return { isMet: false, found: `${name} ${problem}` };
  }
  for (const name of absent) {
    const file = path.resolve(workspace, name);
    if (!isReadable(file, envelope)) return { isMet: false, found: `${name} cannot be seen in this envelope` };
    if (await isThere(file)) return { isMet: false, found: `${name} exists` };
  }
  return { isMet: true, found: `${exist.length} exist, ${absent.length} absent` };
}

/** A link is followed, but a relative name must not lead out of the workspace, where agents write links. */
async function whyNotThere(
  name: string,
  { workspace, envelope }: Pick<GuardContext, "workspace" | "envelope">,
): Promise<string | undefined> {
  const named = path.resolve(workspace, name);
  if (!isReadable(named, envelope) || !(await isThere(named))) return "does not exist";
  let real: string;
  try {
    real = await realpath(named);
  } catch (error) {
    if (errorCodeOf(error) === "ENOENT") return "is a broken link";
    throw error;
  }
  if (!isReadable(real, envelope)) return "does not exist";
  return path.isAbsolute(name) || isInside(real, await realpath(workspace)) ? undefined : "leads out of the workspace";
}

function isReadable(file: string, { readRoots, writeRoots }: Envelope): boolean {
  return readRoots === undefined || [...readRoots, ...writeRoots].some((root) => isInside(file, root));
}

function isInside(file: string, folder: string): boolean {
  const below = path.relative(folder, file);
  return below !== ".." && !below.startsWith(`..${path.sep}`) && !path.isAbsolute(below);
}

/** Throws where it cannot be seen, because unseen is not absent. */
async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw error;
  }
}

/**
 * Of the own thread, unless the query names threads or tasks: what another agent did is no proof of this one's work, and neither
 * is what was imported into the thread.
 */
async function findEntries(
  { query, min = 1, sinceEntered = false }: GuardOf<"evidence">,
  { threadId, enteredAt, findEvidence }: GuardContext,
): Promise<Found> {
  const own =
    query.thread === undefined && query.task === undefined
      ? { thread: threadId, origin: query.origin ?? ("local" as const) }
      : {};
  const since = sinceEntered ? { since: Math.max(enteredAt, query.since ?? 0) } : {};
  const found = await findEvidence({ ...query, ...own, ...since, limit: min });
  const entries = found.slice(0, MAX_ENTRIES).map(({ id }) => id);
  const text = `${found.length} of ${min} entries`;
  return { isMet: found.length >= min, found: text, ...(entries.length === 0 ? {} : { entries }) };
}

function judgeOutcome({ envelope, outcome }: GuardContext): Found {
  if (envelope.outcome === undefined) return { isMet: false, found: `${envelope.id} has no schema of an outcome` };
  if (outcome === undefined) return { isMet: false, found: "the hop has no outcome" };
  const problem = schemaProblem(outcome, envelope.outcome, "the outcome");
  return problem === undefined ? { isMet: true, found: "it has the shape" } : { isMet: false, found: problem };
}

/** What is wrong with a value by a JSON Schema; undefined: nothing. */
export function schemaProblem(
  value: unknown,
  schema: Readonly<Record<string, unknown>>,
  name: string,
): string | undefined {
  const violations = parseJsonSchema(schema).violations(value, { name, matches: boundedMatcher() });
  return violations.length === 0 ? undefined : violations.join("; ");
}
