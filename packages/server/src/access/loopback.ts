import { reachOf } from "@heddle/protocol/ip-address";

/** An address of this machine alone. */
export function isLoopback(host: string): boolean {
  return reachOf(host) === "loopback";
}
