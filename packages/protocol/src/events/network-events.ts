/** What commands did on the network where their envelope lists hosts: once for each host and turn. */
import { z } from "zod";
import { turnEvent } from "./event-parts.ts";

const port = z.int().min(0).max(65_535);

export const networkEvents = [
  /** Host `*` at port 0: all hosts beyond the first hundred. Bytes of a connection that goes on are in the next turn's. */
  turnEvent("network.used", {
    host: z.string(),
    port,
    requests: z.int(),
    bytesSent: z.int(),
    bytesReceived: z.int(),
  }),
  /**
   * `not-listed`: no rule allows the host. `address-not-listed`: a rule allows its name, and it leads to this machine, to a private
   * network or to nobody. `host-mismatch`: URL and header disagree. `malformed`: no host could be read, it is empty.
   * `too-many`: more connections at once than a sandbox may have.
   */
  turnEvent("network.refused", {
    host: z.string(),
    port,
    reason: z.enum(["not-listed", "address-not-listed", "host-mismatch", "malformed", "too-many"]),
    count: z.int(),
  }),
] as const;
