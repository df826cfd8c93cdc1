/**
 * The recorded spec of an envelope, read again by rules of its own, and whether a tool, a path, a host or another envelope
 * is inside it. Nothing here comes from `dispatch`: a mistake there is not repeated.
 */
import { createHash } from "node:crypto";
import { posix } from "node:path";
import { canonical } from "@heddle/protocol";
import { factsIn, isFacts, listIn, numberIn, textIn, textsIn, type Facts } from "./facts.ts";

export interface Spec {
  readonly id: string;
  readonly hash: string;
  readonly tools: readonly string[];
  readonly effects: readonly string[];
  readonly readRoots: readonly string[] | undefined;
  readonly writeRoots: readonly string[];
  readonly masked: readonly string[];
  readonly network: "none" | "all" | readonly string[];
  readonly hasSandbox: boolean;
  readonly approval: string;
  readonly exits: readonly Edge[];
  readonly limits: Readonly<Record<string, number>>;
  /** Lists of files are taken when it is entered and left. */
  readonly hasManifest: boolean;
}

export interface Edge {
  readonly to: string;
  readonly by: readonly string[];
  readonly asks: boolean;
  readonly guards: number;
  /** Those of the guards that are gates. */
  readonly gates: readonly GateSpec[];
}

interface GateSpec {
  readonly name: string;
  /** Of its name and guards. */
  readonly hash: string;
  readonly guards: number;
}

export function gateOf(gate: Facts): GateSpec {
  const name = textIn(gate, "name") ?? "";
  const guards = listIn(gate, "guards");
  return { name, hash: createHash("sha256").update(canonical({ name, guards })).digest("hex"), guards: guards.length };
}

/** undefined: it is not the spec of an envelope. */
export function specOf(value: unknown): Spec | undefined {
  if (!isFacts(value)) return undefined;
  const [id, approval, sandbox] = ["id", "approval", "sandbox"].map((key) => textIn(value, key));
  const [tools, effects, writeRoots, masked] = ["tools", "effects", "writeRoots", "masked"].map((key) =>
    textsIn(value, key),
  );
  const network = networkOf(value["network"]);
  if (id === undefined || approval === undefined || sandbox === undefined || network === undefined) return undefined;
  if (tools === undefined || effects === undefined || writeRoots === undefined || masked === undefined)
    return undefined;
  return {
    id,
    hash: createHash("sha256").update(canonical(value)).digest("hex"),
    tools,
    effects,
    readRoots: textsIn(value, "readRoots"),
    writeRoots,
    masked,
    network,
    hasSandbox: sandbox !== "off",
    approval,
    exits: listIn(value, "exits").map(edgeOf),
    limits: numbersOf(factsIn(value, "limits")),
    hasManifest: value["manifest"] === true,
  };
}

function networkOf(value: unknown): Spec["network"] | undefined {
  if (value === "none" || value === "all") return value;
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
}

function edgeOf(edge: Facts): Edge {
  return {
    to: textIn(edge, "to") ?? "",
    by: textsIn(edge, "by") ?? [],
    asks: textIn(edge, "approval") !== "auto",
    guards: listIn(edge, "guards").length,
    gates: listIn(edge, "guards")
      .filter((guard) => textIn(guard, "kind") === "gate")
      .map(gateOf),
  };
}

function numbersOf(limits: Facts): Readonly<Record<string, number>> {
  const found = Object.keys(limits).map((key) => [key, numberIn(limits, key)] as const);
  return Object.fromEntries(found.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
}

/** An exact name, or everything that begins so. */
export function hasTool(spec: Spec, tool: string): boolean {
  return spec.tools.some((known) => covers(known, tool));
}

function covers(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** Both absolute; by text alone, because what was a link then cannot be known now. */
export function isBelow(path: string, folder: string): boolean {
  const root = posix.resolve(folder);
  const full = posix.resolve(path);
  return full === root || full.startsWith(root === "/" ? "/" : `${root}/`);
}

const KERNEL = ["/proc", "/dev", "/sys"];

/** Why the spec does not allow it; undefined: it does. */
export function refusesPath(spec: Spec, path: string, access: "read" | "write"): string | undefined {
  if (KERNEL.some((folder) => isBelow(path, folder))) return "files of the kernel are in no envelope";
  const roots = spec.writeRoots.filter((root) => isBelow(path, root));
  const mask = spec.masked.find(
    (masked) =>
      isBelow(path, masked) &&
      !roots.some((root) => posix.resolve(root) !== posix.resolve(masked) && isBelow(root, masked)),
  );
  if (mask !== undefined) return `${mask} is masked`;
  if (access === "write") return roots.length > 0 ? undefined : "it is outside the folders that may be written";
  if (spec.readRoots === undefined || roots.length > 0) return undefined;
  return spec.readRoots.some((root) => isBelow(path, root)) ? undefined : "it is outside the folders that may be read";
}

const HTTP_PORTS = [80, 443];

export function hasHost(network: Spec["network"], host: string, port: number): boolean {
  if (network === "all") return true;
  if (network === "none") return false;
  const wanted = bareHost(host);
  return network.some((rule) => {
    const { name, ports } = ruleOf(rule);
    const isNamed = name.startsWith("*.")
      ? wanted.endsWith(name.slice(1)) && wanted.length >= name.length
      : wanted === name;
    return isNamed && ports.includes(port);
  });
}

function bareHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/\.$/, "")
    .replace(/^\[(.*)\]$/, "$1");
}

function ruleOf(rule: string): { readonly name: string; readonly ports: readonly number[] } {
  const [, address, name, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(rule) ?? [];
  return { name: (address ?? name ?? rule).toLowerCase(), ports: port === undefined ? HTTP_PORTS : [Number(port)] };
}

/** Tools that only ask or tell somebody; what they ask for is judged by itself. */
const TALKING: ReadonlySet<string> = new Set([
  "request_permissions",
  "request_user_input",
  "update_goal",
  "update_plan",
  "task_report",
  "hop",
]);

/** What of `inner` exceeds `outer`, as text; undefined: nothing. */
export function exceeds(inner: Spec, outer: Spec): string | undefined {
  const tool = inner.tools.find((name) => !TALKING.has(name) && !outer.tools.some((known) => covers(known, name)));
  if (tool !== undefined) return `the tool ${tool}`;
  const effect = inner.effects.find((one) => !outer.effects.includes(one));
  if (effect !== undefined) return `the effect ${effect}`;
  if (!inner.hasSandbox && outer.hasSandbox) return "running outside the sandbox";
  const written = inner.writeRoots.find((path) => !outer.writeRoots.some((root) => isBelow(path, root)));
  if (written !== undefined) return `writing to ${written}`;
  return readsMore(inner, outer) ?? reachesMore(inner.network, outer.network) ?? longer(inner, outer);
}

function readsMore(inner: Spec, outer: Spec): string | undefined {
  const shown = outer.masked.find((path) => !inner.masked.some((masked) => isBelow(path, masked)));
  if (shown !== undefined) return `reading ${shown}`;
  if (outer.readRoots === undefined) return undefined;
  const allowed = [...outer.readRoots, ...outer.writeRoots];
  const read = (inner.readRoots ?? ["/"]).find((path) => !allowed.some((root) => isBelow(path, root)));
  return read === undefined ? undefined : `reading ${read}`;
}

function reachesMore(inner: Spec["network"], outer: Spec["network"]): string | undefined {
  if (inner === "none" || outer === "all") return undefined;
  if (inner === "all" || outer === "none") return "the network";
  const far = inner.find((rule) => {
    const { name, ports } = ruleOf(rule);
    return !ports.every((port) =>
      outer.some((known) => {
        const its = ruleOf(known);
        if (!its.ports.includes(port)) return false;
        return its.name === name || (its.name.startsWith("*.") && name.replace(/^\*/, "").endsWith(its.name.slice(1)));
      }),
    );
  });
  return far === undefined ? undefined : `the host ${far}`;
}

function longer(inner: Spec, outer: Spec): string | undefined {
  const more = Object.entries(outer.limits).find(([key, limit]) => (inner.limits[key] ?? Infinity) > limit);
  return more === undefined ? undefined : `the limit ${more[0]}`;
}
