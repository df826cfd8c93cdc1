/** What two envelopes both allow, in every dimension: the envelope of a child thread is never wider than its parent's. */
import {
  canonical,
  networkWithin,
  type ApprovalPolicy,
  type Effect,
  type Envelope,
  type EnvelopeLimits,
  type HopEdge,
  type Network,
} from "@heddle/protocol";
import { isInside } from "./call-path.ts";
import { matchesName } from "../mcp/names.ts";

/** The name, and what is no permission (`outcome`), are those of the first one. */
export function intersectEnvelopes(own: Envelope, other: Envelope): Envelope {
  const writeRoots = commonFolders(own.writeRoots, other.writeRoots).filter((root) =>
    [own, other].every((envelope) => isSeen(root, envelope)),
  );
  const readRoots = commonReadRoots(own, other)?.filter((path) => !writeRoots.some((root) => isInside(path, root)));
  const exits = own.exits === undefined ? undefined : commonExits(own.exits, other.exits);
  const limits = smallerLimits(own.limits, other.limits);
  return {
    id: own.id,
    tools: commonTools(own.tools, other.tools),
    effects: own.effects.filter((effect: Effect) => other.effects.includes(effect)),
    ...(readRoots === undefined ? {} : { readRoots }),
    writeRoots,
    masked: [...new Set([...own.masked, ...other.masked])],
    network: commonNetwork(own.network, other.network),
    sandbox: own.sandbox === "off" && other.sandbox === "off" ? "off" : "required",
    approval: stricterApproval(own.approval, other.approval),
    ...(exits === undefined ? {} : { exits }),
    ...(limits === undefined ? {} : { limits }),
    ...(own.outcome === undefined ? {} : { outcome: own.outcome }),
    ...(own.manifest === true || other.manifest === true ? { manifest: true } : {}),
  };
}

/** A pattern of one covers names and narrower patterns of the other. */
function commonTools(own: readonly string[], other: readonly string[]): string[] {
  const isIn = (tools: readonly string[], tool: string): boolean => tools.some((known) => matchesName(known, tool));
  return [...new Set([...own.filter((tool) => isIn(other, tool)), ...other.filter((tool) => isIn(own, tool))])];
}

/** Folders that are inside a folder of each list. */
function commonFolders(own: readonly string[], other: readonly string[]): string[] {
  const inside = (folders: readonly string[], roots: readonly string[]): readonly string[] =>
    folders.filter((folder) => roots.some((root) => isInside(folder, root)));
  return [...new Set([...inside(own, other), ...inside(other, own)])];
}

/** As in the sandbox: of what is masked only writable folders inside are visible. */
function isSeen(path: string, { masked, writeRoots }: Envelope): boolean {
  const around = masked.filter((mask) => isInside(path, mask));
  return around.every((mask) =>
    writeRoots.some((root) => root !== mask && isInside(root, mask) && isInside(path, root)),
  );
}

/** What may be written may be read as well. undefined: everything. */
function commonReadRoots(own: Envelope, other: Envelope): string[] | undefined {
  const readable = ({ readRoots, writeRoots }: Envelope): readonly string[] =>
    readRoots === undefined ? ["/"] : [...readRoots, ...writeRoots];
  if (own.readRoots === undefined && other.readRoots === undefined) return undefined;
  return commonFolders(readable(own), readable(other)).toSorted();
}

function commonNetwork(own: Network, other: Network): Network {
  if (own === "none" || other === "none") return "none";
  if (own === "all") return other;
  if (other === "all") return own;
  const within = (rules: readonly string[], outer: Network): readonly string[] =>
    rules.filter((rule) => networkWithin([rule], outer));
  const common = [...new Set([...within(own, other), ...within(other, own)])];
  return common.length === 0 ? "none" : common;
}

/** From the one that asks least. A hop that a question could lead to stays within both envelopes all the same. */
const APPROVALS: readonly ApprovalPolicy[] = ["never", "on-request", "untrusted"];

function stricterApproval(own: ApprovalPolicy, other: ApprovalPolicy): ApprovalPolicy {
  return APPROVALS.indexOf(own) >= APPROVALS.indexOf(other) ? own : other;
}

function commonExits(own: readonly HopEdge[], other: readonly HopEdge[] = []): HopEdge[] {
  const known = new Set(other.map((edge) => canonical(edge)));
  return own.filter((edge) => known.has(canonical(edge)));
}

/** Every limit of either, and the smaller one of both. */
function smallerLimits(own?: EnvelopeLimits, other?: EnvelopeLimits): EnvelopeLimits | undefined {
  if (own === undefined || other === undefined) return own ?? other;
  const most = new Map(Object.entries(other));
  const smaller = Object.entries(own).flatMap(([key, limit]) =>
    limit === undefined ? [] : [[key, Math.min(limit, most.get(key) ?? limit)] as const],
  );
  return { ...other, ...Object.fromEntries(smaller) };
}
