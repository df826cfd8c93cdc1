/**
 * What the commands of a thread did on the network: counts in memory, by host and port, until they are taken at the end of a
 * turn. Whoever is killed loses the counts since then. A command can name any number of hosts, so the rows are bounded.
 */
import type { Socket } from "node:net";

export interface HostUse {
  readonly host: string;
  readonly port: number;
  /** Since they were last taken; 0 where an earlier one went on. */
  readonly requests: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/**
 * `not-listed`: no rule allows the host. `address-not-listed`: a rule allows its name, and the address is one of this machine, of
 * a private network or of nobody. `host-mismatch`: the header Host names another one. `malformed`: no host could be read.
 */
export type RefusalReason = "not-listed" | "address-not-listed" | "host-mismatch" | "malformed" | "too-many";

export interface HostRefusal {
  readonly host: string;
  readonly port: number;
  readonly reason: RefusalReason;
  readonly count: number;
}

export interface NetworkUse {
  readonly used: readonly HostUse[];
  readonly refused: readonly HostRefusal[];
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export type NetworkLog = ReturnType<typeof createNetworkLog>;

/** Of each kind; a turn that reaches more is summed up in one more row. */
export const MAX_ROWS = 100;
/** The row for the hosts beyond them. */
export const OTHER_HOSTS: HostPort = { host: "*", port: 0 };
/** Where no host could be read. */
export const NO_HOST: HostPort = { host: "", port: 0 };

type Counted<T> = { -readonly [K in keyof T]: T[K] };

export function createNetworkLog() {
  const used = new Map<string, Counted<HostUse>>();
  const refused = new Map<string, Counted<HostRefusal>>();
  const open = new Set<Connection>();

  function useOf({ host, port }: HostPort): Counted<HostUse> {
    return rowOf(used, { host, port }, (to) => ({ ...to, requests: 0, bytesSent: 0, bytesReceived: 0 }));
  }

  /** Adds what the connection carried since the last time. */
  function settle(connection: Connection): void {
    const { bytesWritten, bytesRead } = connection.socket;
    const [sent, received] = [bytesWritten - connection.sent, bytesRead - connection.received];
    if (sent + received <= 0) return;
    const row = useOf(connection.to);
    row.bytesSent += sent;
    row.bytesReceived += received;
    connection.sent = bytesWritten;
    connection.received = bytesRead;
  }

  return {
    /** A request for the host was let through. */
    request(to: HostPort): void {
      useOf(to).requests += 1;
    },
    /** Counts the bytes of a connection to the host until it is closed. */
    follow(to: HostPort, socket: Socket): void {
      const connection = { to, socket, sent: 0, received: 0 };
      open.add(connection);
      socket.once("close", () => {
        settle(connection);
        open.delete(connection);
      });
    },
    refuse(to: HostPort, reason: RefusalReason): void {
      const key = { host: to.host, port: to.port };
      rowOf(refused, key, (row) => ({ ...row, reason, count: 0 }), reason).count += 1;
    },
    /** All counts, which begin again. */
    take(): NetworkUse {
      for (const connection of open) settle(connection);
      const taken = { used: [...used.values()], refused: [...refused.values()] };
      used.clear();
      refused.clear();
      return taken;
    },
  };
}

interface Connection {
  readonly to: HostPort;
  readonly socket: Pick<Socket, "bytesRead" | "bytesWritten">;
  sent: number;
  received: number;
}

function rowOf<Row>(rows: Map<string, Row>, to: HostPort, make: (to: HostPort) => Row, kind = ""): Row {
  const name = `${kind} ${to.host} ${to.port}`;
  const known = rows.get(name);
  if (known !== undefined) return known;
  if (rows.size >= MAX_ROWS && to !== OTHER_HOSTS) return rowOf(rows, OTHER_HOSTS, make, kind);
  const row = make(to);
  rows.set(name, row);
  return row;
}
