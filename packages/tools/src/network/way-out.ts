/**
 * The one way out of a sandbox whose network is a list of hosts. A socket belongs for ever to the network namespace it was made
 * in, so a helper enters the sandbox's namespace, listens on its loopback, hands the sockets to Heddle and ends: Heddle's proxy
 * then accepts connections from inside, and nothing else of it is there. No program has to forward, so none can be killed, be
 * attacked or outlive Heddle.
 */
import { spawn } from "node:child_process";
import { Server } from "node:net";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { z } from "zod";
import { forwardsFor, openForward, proxiedHosts, type Forward, type Inside } from "./forward.ts";
import { createNetworkLog, type NetworkLog } from "./network-log.ts";
import { BOUNDS, createProxy, type ProxyOptions } from "./proxy.ts";
import type { Resolve } from "./targets.ts";

/** What the owner of a sandbox brings for its list of hosts. */
export interface HostAccess {
  readonly log?: NetworkLog | undefined;
  readonly resolve?: Resolve | undefined;
  readonly bounds?: ProxyOptions["bounds"];
}

export interface WayOut extends AsyncDisposable {
  /** For every command inside. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface WayOutOptions extends HostAccess {
  readonly rules: readonly string[];
  /** The program and arguments that let another one run in the network namespace. */
  readonly enter: readonly string[];
  /** Called with the helper's process id while it is in there. */
  readonly onEntered?: ((pid: number) => void) | undefined;
}

/** Below the ports that the system gives, and no program's own. */
const PORT = 14_333;
/** A loaded machine takes a second for it. */
const LISTEN_MS = 20_000;
const MAX_STDERR = 2048;
const PROXY: Inside = { address: "127.0.0.1", port: PORT };
const LOOPBACK = ["localhost", "127.0.0.1", "::1"] as const;

export async function openWayOut(options: WayOutOptions): Promise<WayOut> {
  const { rules, resolve, bounds, log = createNetworkLog() } = options;
  const wanted = forwardsFor(rules).filter(({ port }) => port !== PORT);
  const [listening, ...others] = await listenInside(options, [PROXY, ...wanted]);
  const proxy = createProxy({ rules, resolve, bounds, log });
  proxy.server.listen(listening);
  const made: Forward[] = [];
  const open: AsyncDisposable[] = [proxy];
  for (const [nth, forward] of wanted.entries()) {
    const server = others[nth];
    if (server === undefined) continue;
    open.push(openForward(server, forward, { log, bounds: { ...BOUNDS, ...bounds } }));
    made.push(forward);
  }
  return {
    environment: proxyEnvironment(proxiedHosts(rules, made)),
    async [Symbol.asyncDispose]() {
      await Promise.all(open.map((one) => one[Symbol.asyncDispose]()));
    },
  };
}

/**
 * The loopback is the sandbox's, and programs reach servers of their own there. A host of it is asked for through the proxy where
 * a listed port of it could not be brought inside.
 */
function proxyEnvironment(proxied: readonly string[]): Record<string, string> {
  const url = `http://127.0.0.1:${PORT}`;
  const direct = LOOPBACK.filter((host) => !proxied.includes(host)).join(",");
  const both = (name: string, value: string): [string, string][] => [
    [name, value],
    [name.toLowerCase(), value],
  ];
  return Object.fromEntries([
    ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => both(name, url)),
    ...both("NO_PROXY", direct),
    // Node obeys the others only when told to.
    ["NODE_USE_ENV_PROXY", "1"],
  ]);
}

/**
 * Runs in Heddle's own Node, with the host's files, before any command is inside. Ends when Heddle has the sockets, or is gone.
 * Without the first there is no way out; of the others a port of the system may not be for everybody, or there is no IPv6.
 */
const HELPER = `
const { createServer } = require("node:net");
const listen = (address, port) => new Promise((resolve) => {
  const server = createServer().once("error", resolve);
  server.listen({ host: address, port, ipv6Only: true }, () => resolve(server));
});
(async () => {
  for (const [nth, { address, port }] of JSON.parse(process.argv[1]).entries()) {
    const server = await listen(address, port);
    if (!(server instanceof Error)) process.send({ pid: process.pid, nth }, server);
    else if (nth === 0) { process.stderr.write(server.message); process.exit(1); }
  }
  process.send({ pid: process.pid });
})();
process.once("disconnect", () => process.exit(0));
`;

const Said = z.object({ pid: z.number(), nth: z.number().optional() });

/** By the places of what was wanted; where none could be made it is empty. */
async function listenInside(
  { enter, onEntered }: WayOutOptions,
  wanted: readonly Inside[],
): Promise<readonly (Server | undefined)[]> {
  const [file = process.execPath, ...args] = enter;
  const places = JSON.stringify(wanted.map(({ address, port }) => ({ address, port })));
  const child = spawn(file, [...args, process.execPath, "-e", HELPER, "--", places], {
    cwd: "/",
    env: { LC_ALL: "C" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    // A ^C at the terminal is for Heddle.
    detached: true,
    timeout: LISTEN_MS,
    killSignal: "SIGKILL",
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(0, MAX_STDERR);
  });
  // Not `close`: after a handle was sent over the channel it does not come.
  const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
  const said = new Promise<void>((resolve) => void child.stderr?.once("end", () => resolve()));
  const servers: (Server | undefined)[] = wanted.map(() => undefined);
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      Promise.all([ended, said]).then(() => reject(new Error(stderr.trim() || "the helper ended")), reject);
      child.on("message", (message, handle) => {
        try {
          const { pid, nth } = Said.parse(message);
          if (nth === 0) onEntered?.(pid);
          if (nth === undefined) resolve();
          else if (handle instanceof Server) servers[nth] = handle;
          else throw new Error("the helper sent no socket");
        } catch (error) {
          reject(error);
        }
      });
    });
    return servers;
  } catch (error) {
    for (const server of servers) server?.close();
    const message = `no way to the listed hosts could be made in the sandbox: ${reasonOf(error)}`;
    throw new HeddleError("sandbox.failed", message, { cause: error });
  } finally {
    if (child.connected) child.disconnect();
    if (child.pid !== undefined) await ended;
  }
}
