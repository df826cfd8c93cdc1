/**
 * Which addresses a webhook may connect to. The outside world: yes. This machine: where the address itself says so.
 * Private networks: where the owner allows it. Link-local addresses and the metadata servers of clouds, which give keys
 * to whoever asks: never.
 */
import { never } from "@heddle/protocol";
import { reachOf } from "@heddle/protocol/ip-address";

export interface AddressRule {
  readonly allowsPrivate: boolean;
  /** The address as it is written names this machine. */
  readonly allowsLoopback: boolean;
}

/** Why an address is refused, or nothing. */
export function refusalOf(address: string, rule: AddressRule): string | undefined {
  const reach = reachOf(address);
  switch (reach) {
    case undefined:
      return `${address} is not an IP address`;
    case "metadata":
      return `${address} is link-local, where cloud metadata services are`;
    case "loopback":
      return rule.allowsLoopback || rule.allowsPrivate
        ? undefined
        : `${address} is this machine; set allow_private = true`;
    case "private":
      return rule.allowsPrivate ? undefined : `${address} is private; set allow_private = true`;
    case "nowhere":
      return `${address} is not the address of a receiver`;
    case "global":
      return undefined;
    default:
      return never(reach);
  }
}
