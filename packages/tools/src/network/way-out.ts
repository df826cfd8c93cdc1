/**
 * The one way out of a sandbox whose network is a list of hosts. A socket belongs for ever to the network namespace it was made
 * in, so a helper enters the sandbox's namespace, listens on its loopback, hands the socket to Heddle and ends: Heddle's proxy
 * then accepts connections from inside, and nothing else of it is there. No program has to forward, so none can be killed, be
 * attacked or outlive Heddle.
 */
import { spawn } from "node:child_process";
import { Server } from "node:net";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { isHostAllowed } from "@heddle/protocol/hosts";
import { createNetworkLog, type NetworkLog } from "./network-log.ts";
import { createProxy, type ProxyOptions } from "./proxy.ts";
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
const LOOPBACK = ["localhost", "127.0.0.1", "::1"] as const;

export async function openWayOut(options: WayOutOptions): Promise<WayOut> {
  const { rules, resolve, bounds, log = createNetworkLog() } = options;
  const listening = await listenInside(options);
  const proxy = createProxy({ rules, resolve, bounds, log });
  proxy.server.listen(listening);
  return {
    environment: proxyEnvironment(rules),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/**
 * Programs reach servers of their own on the loopback, which is the sandbox's; one that is listed is the host's, and is asked
 * for through the proxy.
 */
function proxyEnvironment(rules: readonly string[]): Record<string, string> {
  const url = `http://127.0.0.1:${PORT}`;
  const isListed = (host: string): boolean =>
    rules.some((rule) => isHostAllowed([rule], host, Number(/:(\d+)$/.exec(rule)?.[1] ?? 80)));
  const direct = LOOPBACK.filter((host) => !isListed(host)).join(",");
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

/** Runs in Heddle's own Node, with the host's files, before any command is inside. Ends when Heddle has the socket, or is gone. */
const HELPER = `
const server = require("node:net").createServer();
server.once("error", (error) => { process.stderr.write(error.message); process.exit(1); });
server.listen(${PORT}, "127.0.0.1", () => process.send(process.pid, server));
process.once("disconnect", () => process.exit(0));
`;

async function listenInside({ enter, onEntered }: WayOutOptions): Promise<Server> {
  const [file = process.execPath, ...args] = enter;
  const child = spawn(file, [...args, process.execPath, "-e", HELPER], {
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
  try {
    return await new Promise<Server>((resolve, reject) => {
      child.once("error", reject);
      Promise.all([ended, said]).then(() => reject(new Error(stderr.trim() || "the helper ended")), reject);
      child.once("message", (pid, handle) => {
        if (!(handle instanceof Server)) return reject(new Error("the helper sent no socket"));
        try {
          onEntered?.(Number(pid));
          resolve(handle);
        } catch (error) {
          handle.close();
          reject(error);
        }
      });
    });
  } catch (error) {
    const message = `no way to the listed hosts could be made in the sandbox: ${reasonOf(error)}`;
    throw new HeddleError("sandbox.failed", message, { cause: error });
  } finally {
    if (child.connected) child.disconnect();
    if (child.pid !== undefined) await ended;
  }
}
