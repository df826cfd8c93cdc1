/**
 * Which addresses a webhook may connect to. The outside world: yes. This machine: where the address itself says so.
 * Private networks: where the owner allows it. Link-local addresses and the metadata servers of clouds, which give keys
 * to whoever asks: never.
 */
import { BlockList, isIP } from "node:net";

const NEVER = blockList([
  ["169.254.0.0", 16],
  ["fe80::", 10],
  ["fd00:ec2::", 32],
  ["fd20:ce::", 32],
  ["100.100.100.200", 32],
  ["192.0.0.192", 32],
  ["168.63.129.16", 32],
]);

const LOOPBACK = blockList([
  ["127.0.0.0", 8],
  ["::1", 128],
]);

const PRIVATE = blockList([
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
  ["198.18.0.0", 15],
  ["fc00::", 7],
  ["fec0::", 10],
]);

/** Nobody's, or many's: nothing there can be a receiver. Ways to write an IPv4 address in IPv6 are in it too. */
const UNUSABLE = blockList([
  ["0.0.0.0", 8],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  ["::", 128],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["ff00::", 8],
]);

export interface AddressRule {
  readonly allowsPrivate: boolean;
  /** The address as it is written names this machine. */
  readonly allowsLoopback: boolean;
}

/** Why an address is refused, or nothing. */
export function refusalOf(address: string, rule: AddressRule): string | undefined {
  const plain = withoutMapping(address);
  const isIn = (list: BlockList): boolean => list.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  if (isIP(plain) === 0) return `${address} is no address`;
  if (isIn(NEVER)) return `${address} is link-local, where clouds keep their metadata`;
  if (isIn(LOOPBACK)) {
    return rule.allowsLoopback || rule.allowsPrivate
      ? undefined
      : `${address} is this machine; set allow_private = true`;
  }
  if (isIn(PRIVATE)) return rule.allowsPrivate ? undefined : `${address} is private; set allow_private = true`;
  return isIn(UNUSABLE) ? `${address} is not the address of a receiver` : undefined;
}

/** `localhost` and what is written as a loopback address: whoever wrote it meant this machine. */
export function namesThisMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return bare === "localhost" || (isIP(bare) !== 0 && LOOPBACK.check(bare, isIP(bare) === 6 ? "ipv6" : "ipv4"));
}

/** ::ffff:10.0.0.1 and ::ffff:a00:1 are 10.0.0.1. */
function withoutMapping(address: string): string {
  const bare = address.replace(/%.*$/, "");
  const dotted = /^::(?:ffff:)?(?:0:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (dotted !== undefined) return dotted;
  const [, high, low] = /^::ffff:(?:0:)?([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(bare) ?? [];
  if (high === undefined || low === undefined) return bare;
  const bits = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join(".");
}

function blockList(ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, isIP(network) === 6 ? "ipv6" : "ipv4");
  return list;
}
