/**
 * Which hosts a list of rules allows. A host is compared in one form, however it is written: names in lower case and ASCII
 * without the last dot, addresses by their bytes. What has no such form is allowed by no rule.
 */
import type { Network } from "./envelope.ts";
import { ipv4Bytes, ipv6Bytes } from "./ip-address.ts";

/** Of HTTP; a rule without a port is for these. */
const DEFAULT_PORTS: readonly number[] = [80, 443];
const LAST_PORT = 65_535;
/** Of DNS. */
const MAX_NAME = 253;
const MAX_LABEL = 63;

/** The text is the form in which hosts are compared, stored and shown: `example.org`, `127.0.0.1`, `[::1]`. */
export interface Host {
  readonly kind: "name" | "address";
  readonly text: string;
}

/** undefined: no program could mean a host by it, or two programs could mean different ones. */
export function parseHost(text: string): Host | undefined {
  // What a URL parser would drop, decode or take for another part of a URL.
  // oxlint-disable-next-line no-control-regex
  if (text.length > MAX_INPUT || /[\u0000-\u0020\u007f%/\\?#@<>^|`"{}*]/.test(text)) return undefined;
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  if (bare.includes(":")) return addressV6(bare);
  if (bare !== text) return undefined;
  // Knows IDNA and every notation of IPv4.
  const parsed = URL.canParse(`http://${text}/`) ? new URL(`http://${text}/`).hostname : "";
  const name = parsed.endsWith(".") ? parsed.slice(0, -1) : parsed;
  if (ipv4Bytes(name) !== undefined) return { kind: "address", text: name };
  return isName(name) ? { kind: "name", text: name } : undefined;
}

/** A name of 253 letters takes at most three times as many characters that are not ASCII. */
const MAX_INPUT = 3 * MAX_NAME;

export function isHostAllowed(rules: readonly string[], host: string, port: number): boolean {
  const wanted = parseHost(host);
  return wanted !== undefined && rules.some((rule) => isAllowedBy(parseRule(rule), wanted, port));
}

/** `none` is within every network, a list within a list that allows all it allows. */
export function networkWithin(inner: Network, outer: Network): boolean {
  if (inner === "none" || outer === "all") return true;
  if (inner === "all") return false;
  const allowed = outer === "none" ? [] : outer.map(parseRule);
  return inner.every((text) => {
    const rule = parseRule(text);
    return rule === undefined || rule.ports.every((port) => allowed.some((other) => isRuleWithin(rule, other, port)));
  });
}

export const HOST_RULE_FORM = /^((\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?$/;
export const HOST_RULE_TEXT =
  "must be a host in lower case: name, *.name or an address, with :port where it is not 80 or 443";

/** What is wrong with a rule; undefined: nothing. */
export function hostRuleProblem(rule: string): string | undefined {
  if (!HOST_RULE_FORM.test(rule)) return HOST_RULE_TEXT;
  if (parseRule(rule) !== undefined) return undefined;
  return "must be a host: an address is written as 127.0.0.1 or [::1], a port is at most 65535";
}

/** How an owner writes the rule for a host and port. */
export function hostRuleFor({ text }: Host, port: number): string {
  return DEFAULT_PORTS.includes(port) ? text : `${text}:${port}`;
}

interface Rule {
  readonly host: Host;
  /** The host is a name, and every name below it is meant. */
  readonly isBelow: boolean;
  readonly ports: readonly number[];
}

/** undefined: allows nothing. */
function parseRule(rule: string): Rule | undefined {
  const [, star, text = "", digits] = /^(\*\.)?(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(rule) ?? [];
  const host = parseHost(text);
  const ports = digits === undefined ? DEFAULT_PORTS : [Number(digits)];
  const isBelow = star !== undefined;
  if (host === undefined || ports.some((port) => port < 1 || port > LAST_PORT)) return undefined;
  // A rule for an address in another notation than its own would be read as something else by its reader.
  if (host.kind === "address" && (isBelow || (!text.startsWith("[") && text !== host.text))) return undefined;
  return { host, isBelow, ports };
}

function isAllowedBy(rule: Rule | undefined, { kind, text }: Host, port: number): boolean {
  if (rule?.ports.includes(port) !== true || rule.host.kind !== kind) return false;
  return rule.isBelow ? text.endsWith(`.${rule.host.text}`) : text === rule.host.text;
}

function isRuleWithin({ host, isBelow }: Rule, outer: Rule | undefined, port: number): boolean {
  if (!isBelow) return isAllowedBy(outer, host, port);
  if (outer?.isBelow !== true || !outer.ports.includes(port)) return false;
  return host.text === outer.host.text || host.text.endsWith(`.${outer.host.text}`);
}

function isName(name: string): boolean {
  const labels = name.split(".");
  return name.length <= MAX_NAME && labels.every((label) => label.length <= MAX_LABEL && /^[a-z0-9_-]+$/.test(label));
}

/** An IPv6 address that stands for an IPv4 one is that one. */
function addressV6(text: string): Host | undefined {
  const bytes = ipv6Bytes(text);
  if (bytes === undefined) return undefined;
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (isMapped) return { kind: "address", text: bytes.slice(12).join(".") };
  return { kind: "address", text: new URL(`http://[${text}]/`).hostname };
}
