/**
 * Where an address leads, judged by its bytes and not by how it is written. An IPv6 address that carries an IPv4 one leads
 * where that one leads. What is not assigned to anybody in the world is no place to go to.
 */

/**
 * `metadata`: link-local, and where clouds give keys to whoever asks. `nowhere`: reserved, many receivers at once, or a way
 * to write something else.
 */
export type Reach = "metadata" | "loopback" | "private" | "nowhere" | "global";

/** undefined: no address. A zone (`%eth0`) is left aside. */
export function reachOf(address: string): Reach | undefined {
  const bare = address.replace(/^\[|\]$|%.*$/g, "");
  const four = ipv4Bytes(bare);
  if (four !== undefined) return reachOfV4(four);
  const six = ipv6Bytes(bare);
  return six === undefined ? undefined : reachOfV6(six);
}

/** `localhost`, a name below it, or an address of this machine: whoever writes it means this machine. */
export function namesThisMachine(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || reachOf(hostname) === "loopback";
}

type Range = readonly [network: string, bits: number];

const V4: readonly (readonly [Reach, readonly Range[]])[] = [
  [
    "metadata",
    [
      ["169.254.0.0", 16],
      ["100.100.100.200", 32],
      ["192.0.0.192", 32],
      ["168.63.129.16", 32],
    ],
  ],
  ["loopback", [["127.0.0.0", 8]]],
  [
    "private",
    [
      ["10.0.0.0", 8],
      ["172.16.0.0", 12],
      ["192.168.0.0", 16],
      ["100.64.0.0", 10],
      ["198.18.0.0", 15],
    ],
  ],
  [
    "nowhere",
    [
      ["0.0.0.0", 8],
      ["192.0.0.0", 24],
      ["192.0.2.0", 24],
      ["192.88.99.0", 24],
      ["198.51.100.0", 24],
      ["203.0.113.0", 24],
      ["224.0.0.0", 3],
    ],
  ],
];

const V6: readonly (readonly [Reach, readonly Range[]])[] = [
  [
    "metadata",
    [
      ["fe80::", 10],
      ["fd00:ec2::", 32],
      ["fd20:ce::", 32],
    ],
  ],
  ["loopback", [["::1", 128]]],
  [
    "private",
    [
      ["fc00::", 7],
      ["fec0::", 10],
    ],
  ],
  [
    "nowhere",
    [
      ["2001::", 23],
      ["2001:db8::", 32],
      ["3fff::", 20],
    ],
  ],
  // All that is given to anybody in the world.
  ["global", [["2000::", 3]]],
];

function reachOfV4(bytes: readonly number[]): Reach {
  return listed(V4, bytes, ipv4Bytes) ?? "global";
}

function reachOfV6(bytes: readonly number[]): Reach {
  if (isIn(bytes, ipv6Bytes("::ffff:0:0"), 96)) return reachOfV4(bytes.slice(12));
  for (const [network, bits, inner, isInUse] of CARRIERS) {
    if (!isIn(bytes, ipv6Bytes(network), bits) || listed(V6, bytes, ipv6Bytes) === "loopback") continue;
    const reaches = inner(bytes).map(reachOfV4);
    if (reaches.includes("metadata")) return "metadata";
    // A way through a translator into a network of somebody's own is nobody's to write.
    return isInUse && reaches.every((reach) => reach === "global") ? "global" : "nowhere";
  }
  return listed(V6, bytes, ipv6Bytes) ?? "nowhere";
}

/** Forms that carry an IPv4 address, where it stands in them, and whether anything sends along them today. */
const CARRIERS: readonly (readonly [string, number, (bytes: readonly number[]) => readonly number[][], boolean])[] = [
  ["::", 96, (bytes) => [bytes.slice(12)], false],
  ["::ffff:0:0:0", 96, (bytes) => [bytes.slice(12)], false],
  ["64:ff9b::", 96, (bytes) => [bytes.slice(12)], true],
  // Its operator chooses where the four bytes stand: at the end, or around the eighth byte.
  ["64:ff9b:1::", 48, (bytes) => [bytes.slice(12), [...bytes.slice(6, 8), ...bytes.slice(9, 11)]], true],
  ["2002::", 16, (bytes) => [bytes.slice(2, 6)], true],
  ["2001::", 32, (bytes) => [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)], true],
];

function listed(
  table: typeof V4,
  bytes: readonly number[],
  parse: (text: string) => readonly number[] | undefined,
): Reach | undefined {
  return table.find(([, ranges]) => ranges.some(([network, bits]) => isIn(bytes, parse(network), bits)))?.[0];
}

function isIn(bytes: readonly number[], network: readonly number[] | undefined, bits: number): boolean {
  return bytes.every((byte, index) => {
    const left = Math.min(8, Math.max(0, bits - index * 8));
    const mask = (0xff << (8 - left)) & 0xff;
    return ((byte ^ (network?.[index] ?? 0)) & mask) === 0;
  });
}

function ipv4Bytes(text: string): readonly number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part))) return undefined;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte < 256) ? bytes : undefined;
}

function ipv6Bytes(text: string): readonly number[] | undefined {
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
