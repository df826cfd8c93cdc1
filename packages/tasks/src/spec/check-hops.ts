/**
 * The hops of a spec before anything runs: each envelope exists, and an edge for tasks leads to it from the one before. What
 * decides at the hop itself (guards, ceiling, what is carried) is judged there.
 */
import { HeddleError, isHeddleError, isSandboxMode, type ErrorCode, type HopEdge } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { ENVELOPE_OF_MODE } from "@heddle/tools";

interface HopProblem {
  readonly code: ErrorCode;
  readonly message: string;
}

type Hopping = Pick<TaskSpec, "envelope" | "hops" | "sandbox" | "workspace">;

export async function refuseImpossibleHops(spec: Hopping, home: string): Promise<void> {
  const problem = await hopProblem(spec, home);
  if (problem !== undefined) throw new HeddleError(problem.code, problem.message);
}

/** The first one; undefined: there is none. */
export async function hopProblem(spec: Hopping, home: string): Promise<HopProblem | undefined> {
  const { hops, envelope, sandbox, workspace } = spec;
  if (hops === undefined || envelope === undefined) return undefined;
  const { envelopeFolders, readEnvelopes } = await import("@heddle/tools/envelopes");
  const first = isSandboxMode(envelope) ? ENVELOPE_OF_MODE[envelope] : envelope;
  try {
    const known = readEnvelopes(envelopeFolders(home, workspace));
    let before = known.entry(first).spec;
    for (const [index, { to, carry }] of hops.entries()) {
      const next = known.entry(to).spec;
      const refuse = (code: ErrorCode, why: string): HopProblem => ({
        code,
        message: `hop ${index + 1}: ${why}`,
      });
      const edge = edgeFor(before.exits, to);
      if (edge === undefined) return refuse("hop.no-edge", noEdge(before.id, to, before.exits));
      if (!edge.by.includes("task"))
        return refuse(
          "hop.not-authorized",
          `the edge from "${before.id}" to "${to}" is for ${edge.by.join(" and ")}, not for tasks`,
        );
      if (needsOutcome(edge))
        return refuse(
          "hop.guard-failed",
          `the edge from "${before.id}" to "${to}" needs an outcome, which no task gives`,
        );
      if (edge.carry === undefined && Object.keys(carry ?? {}).length > 0)
        return refuse("hop.carry-invalid", `the edge from "${before.id}" to "${to}" carries nothing`);
      if (next.sandbox === "off" && sandbox !== "danger-full-access")
        return refuse(
          "door.forbidden",
          `"${to}" has no sandbox; a task enters it only with sandbox: danger-full-access`,
        );
      before = next;
    }
    return undefined;
  } catch (error) {
    // No such envelope, or a file that cannot be read.
    if (!isHeddleError(error) || !/^(?:envelope|gate)\./.test(error.code)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** As `edgeTo` looks for one, in a spec that is not entered yet. */
function edgeFor(exits: readonly HopEdge[], to: string): HopEdge | undefined {
  const edges = exits.filter((edge) => edge.to === to);
  return edges.find(({ by }) => by.includes("task")) ?? edges[0];
}

function needsOutcome({ guards = [] }: HopEdge): boolean {
  const all = guards.flatMap((guard) => (guard.kind === "gate" ? (guard.guards ?? []) : [guard]));
  return all.some(({ kind }) => kind === "outcome");
}

function noEdge(from: string, to: string, exits: readonly HopEdge[]): string {
  const ways = exits.filter(({ by }) => by.includes("task")).map((edge) => edge.to);
  const known = ways.length === 0 ? "none is open to tasks" : `open to tasks: ${[...new Set(ways)].join(", ")}`;
  return from === to ? `the task is in "${to}" already` : `no edge leads from "${from}" to "${to}"; ${known}`;
}
