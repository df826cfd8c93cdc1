/**
 * Where an address leads, by its bytes and not by how it is written. An IPv6 address that carries an IPv4 one leads where
 * that one leads. Addresses that are not assigned lead nowhere.
 */

/**
 * `metadata`: link-local, and where clouds hand out credentials. `nowhere`: reserved, multicast, or another notation for
 * something else.
 */
export type Reach = "metadata" | "loopback" | "private" | "nowhere" | "global";

/** undefined: not an address. A zone (`%eth0`) is ignored. */
export function reachOf(address: string): Reach | undefined {
  const bare = address.replace(/^\[|\]$|%.*$/g, "");
  const four = ipv4Bytes(bare);
  if (four !== undefined) return reachOfV4(four);
  const six = ipv6Bytes(bare);
  return six === undefined ? undefined : reachOfV6(six);
}

/** `localhost`, a name below it, or a loopback address. */
export function namesThisMachine(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || reachOf(hostname) === "loopback";
}

/** In CIDR notation; the first list that holds an address decides. */
type Ranges = readonly (readonly [Reach, readonly string[]])[];

const V4: Ranges = [
  ["metadata", ["169.254.0.0/16", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32"]],
  ["loopback", ["127.0.0.0/8"]],
  ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"]],
  ["nowhere", ["0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"]],
  ["nowhere", ["198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"]],
];

const V6: Ranges = [
  ["metadata", ["fe80::/10", "fd00:ec2::/32", "fd20:ce::/32"]],
  ["loopback", ["::1/128"]],
  ["private", ["fc00::/7", "fec0::/10"]],
  ["nowhere", ["2001::/23", "2001:db8::/32", "3fff::/20"]],
  // All that is assigned.
  ["global", ["2000::/3"]],
];

function reachOfV4(bytes: readonly number[]): Reach {
  return listed(V4, bytes, ipv4Bytes) ?? "global";
}

function reachOfV6(bytes: readonly number[]): Reach {
  if (isIn(bytes, "::ffff:0:0/96", ipv6Bytes)) return reachOfV4(bytes.slice(12));
  for (const [range, inner, isInUse] of CARRIERS) {
    if (!isIn(bytes, range, ipv6Bytes) || listed(V6, bytes, ipv6Bytes) === "loopback") continue;
    const reaches = inner(bytes).map(reachOfV4);
    if (reaches.includes("metadata")) return "metadata";
    // Through a translator only global addresses may be reached.
    return isInUse && reaches.every((reach) => reach === "global") ? "global" : "nowhere";
  }
  return listed(V6, bytes, ipv6Bytes) ?? "nowhere";
}

/** Forms that carry an IPv4 address, where it is in them, and whether they are in use today. */
const CARRIERS: readonly (readonly [string, (bytes: readonly number[]) => readonly number[][], boolean])[] = [
  ["::/96", (bytes) => [bytes.slice(12)], false],
  ["::ffff:0:0:0/96", (bytes) => [bytes.slice(12)], false],
  ["64:ff9b::/96", (bytes) => [bytes.slice(12)], true],
  // The operator chooses where the four bytes are: at the end, or around the eighth byte.
  ["64:ff9b:1::/48", (bytes) => [bytes.slice(12), [...bytes.slice(6, 8), ...bytes.slice(9, 11)]], true],
  ["2002::/16", (bytes) => [bytes.slice(2, 6)], true],
  ["2001::/32", (bytes) => [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)], true],
];

type Parse = (text: string) => readonly number[] | undefined;

function listed(table: Ranges, bytes: readonly number[], parse: Parse): Reach | undefined {
  return table.find(([, ranges]) => ranges.some((range) => isIn(bytes, range, parse)))?.[0];
}

function isIn(bytes: readonly number[], range: string, parse: Parse): boolean {
  const [text = "", bits] = range.split("/");
  const network = parse(text);
  return bytes.every((byte, index) => {
    const left = Math.min(8, Math.max(0, Number(bits) - index * 8));
    const mask = (0xff << (8 - left)) & 0xff;
    return ((byte ^ (network?.[index] ?? 0)) & mask) === 0;
  });
}

export function ipv4Bytes(text: string): readonly number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part))) return undefined;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte < 256) ? bytes : undefined;
}

export function ipv6Bytes(text: string): readonly number[] | undefined {
  const sides = text.split("::");
  if (sides.length > 2) return undefined;
  const [before, after] = [groupBytes(sides[0] ?? ""), groupBytes(sides[1] ?? "")];
  if (before === undefined || after === undefined) return undefined;
  const missing = 16 - before.length - after.length;
  if (sides.length === 1 ? missing !== 0 : missing < 2) return undefined;
  return [...before, ...Array.from({ length: missing }, () => 0), ...after];
}

function groupBytes(text: string): readonly number[] | undefined {
  if (text === "") return [];
  const groups = text.split(":");
  const bytes: number[] = [];
  for (const [index, group] of groups.entries()) {
    const four = index === groups.length - 1 ? ipv4Bytes(group) : undefined;
    if (four !== undefined) bytes.push(...four);
    else if (/^[0-9A-Fa-f]{1,4}$/.test(group))
      bytes.push(Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255);
    else return undefined;
  }
  return bytes;
}
