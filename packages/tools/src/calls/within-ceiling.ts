/** Whether an envelope is within another one, in every dimension. Both are resolved in the same surroundings. */
import { networkWithin, type Envelope } from "@heddle/protocol";
import { APPROVAL_ORDER } from "../envelopes/resolve.ts";
import { matchesName } from "../mcp/names.ts";
import { isInside } from "./call-path.ts";

/** What of an envelope exceeds a ceiling, as text; undefined: nothing. */
export function withinCeiling(envelope: Envelope, ceiling: Envelope): string | undefined {
  for (const beyond of DIMENSIONS) {
    const excess = beyond(envelope, ceiling);
    if (excess !== undefined) return excess;
  }
  return undefined;
}

type Dimension = (envelope: Envelope, ceiling: Envelope) => string | undefined;

const DIMENSIONS: readonly Dimension[] = [
  beyondSandbox,
  beyondNetwork,
  beyondWriting,
  beyondReading,
  beyondMasks,
  beyondTools,
  beyondEffects,
  beyondApproval,
  beyondLimits,
];

function beyondSandbox(envelope: Envelope, ceiling: Envelope): string | undefined {
  return envelope.sandbox === "off" && ceiling.sandbox !== "off" ? "running outside the sandbox" : undefined;
}

function beyondNetwork({ network }: Envelope, ceiling: Envelope): string | undefined {
  if (networkWithin(network, ceiling.network)) return undefined;
  return typeof network === "string" ? "the network" : `the network of ${network.join(", ")}`;
}

function beyondWriting({ writeRoots }: Envelope, ceiling: Envelope): string | undefined {
  const far = writeRoots.find((path) => !isInAny(path, ceiling.writeRoots));
  return far === undefined ? undefined : `writing to ${far}`;
}

function beyondReading({ readRoots }: Envelope, ceiling: Envelope): string | undefined {
  if (ceiling.readRoots === undefined) return undefined;
  const readable = [...ceiling.readRoots, ...ceiling.writeRoots];
  const far = (readRoots ?? ["/"]).find((path) => !isInAny(path, readable));
  return far === undefined ? undefined : `reading ${far}`;
}

/** As in the sandbox: a writable folder inside a masked one is visible. */
function beyondMasks({ masked, writeRoots }: Envelope, ceiling: Envelope): string | undefined {
  const seen = ceiling.masked.find((path) => !isInAny(path, masked));
  if (seen !== undefined) return `seeing ${seen}`;
  const shown = (roots: readonly string[], mask: string): readonly string[] =>
    roots.filter((root) => root !== mask && isInside(root, mask));
  for (const mask of ceiling.masked) {
    const far = shown(writeRoots, mask).find((root) => !isInAny(root, shown(ceiling.writeRoots, mask)));
    if (far !== undefined) return `seeing ${far}`;
  }
  return undefined;
}

/** They only ask or tell somebody; what they ask for is judged by itself. */
const TALKING: ReadonlySet<string> = new Set([
  "request_permissions",
  "request_user_input",
  "update_goal",
  "update_plan",
  "task_report",
  "hop",
]);

function beyondTools({ tools }: Envelope, ceiling: Envelope): string | undefined {
  const far = tools.find((tool) => !TALKING.has(tool) && !ceiling.tools.some((known) => matchesName(known, tool)));
  return far === undefined ? undefined : `the tool ${far}`;
}

function beyondEffects({ effects }: Envelope, ceiling: Envelope): string | undefined {
  const far = effects.find((effect) => !ceiling.effects.includes(effect));
  return far === undefined ? undefined : `the effect "${far}"`;
}

function beyondApproval({ approval }: Envelope, ceiling: Envelope): string | undefined {
  const isFreer = APPROVAL_ORDER.indexOf(approval) > APPROVAL_ORDER.indexOf(ceiling.approval);
  return isFreer ? `running without the questions of "${ceiling.approval}"` : undefined;
}

function beyondLimits({ limits = {} }: Envelope, { limits: most = {} }: Envelope): string | undefined {
  const given = new Map(Object.entries(limits));
  for (const [key, max] of Object.entries(most)) {
    const own = given.get(key);
    if (max !== undefined && (own === undefined || own > max))
      return `${own ?? "no limit"} for ${key} (at most ${max})`;
  }
  return undefined;
}

function isInAny(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => isInside(path, root));
}
