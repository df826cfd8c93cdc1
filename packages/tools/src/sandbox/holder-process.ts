/**
 * The process that holds a sandbox made of namespaces. It is started before anybody knows what the sandbox shall look
 * like, because starting it takes longer than finding that out:
 *
 *   started ─▶ alive (the host allows namespaces and mounts) ─▶ told its plan ─▶ ready (everything is in place) ─▶ stopped
 */
import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { onlyStandardStreams } from "../inherited-descriptors.ts";
import { findHostTool } from "./host-tools.ts";
import { HOLDER_SCRIPT } from "./holder-script.ts";
import type { Scratch } from "./scratch.ts";

/** A loaded machine with hundreds of mounts needs a second; a hang must not become a hanging turn. */
const OPEN_TIMEOUT_MS = 20_000;
const MAX_STDERR = 4096;
const UNSHARE = "--user --map-root-user --mount --propagation private --ipc --pid --fork --kill-child".split(" ");

export type Network = "none" | "all";

export interface NamespaceTools {
  readonly unshare: string;
  readonly nsenter: string;
  readonly setpriv: string;
  readonly mount: string;
  readonly sh: string;
}

export function findNamespaceTools(): NamespaceTools {
  const found = { ...need("unshare"), ...need("nsenter"), ...need("setpriv"), ...need("mount"), ...need("sh") };
  need("pivot_root");
  return found;
}

function need<Name extends string>(name: Name): Record<Name, string> {
  const path = findHostTool(name);
  if (path === undefined) throw namespacesUnavailable(`the program ${name} is missing; it is part of util-linux`);
  const entry: Partial<Record<Name, string>> = {};
  entry[name] = path;
  return entry as Record<Name, string>;
}

export function namespacesUnavailable(reason: string): HeddleError {
  return new HeddleError("sandbox.unavailable", `namespaces: ${reason}`);
}

export interface HolderReady {
  /** Of the first process of its pid namespace, as the host numbers it. */
  readonly pid: number;
  /** `unshare` can show the caller's own uid inside; older ones can only show root. */
  readonly mapsUser: boolean;
}

export interface HolderProcess extends AsyncDisposable {
  readonly tools: NamespaceTools;
  readonly network: Network;
  readonly scratch: Scratch;
  /** Rejects when the host refuses. */
  readonly alive: Promise<void>;
  readonly isRunning: boolean;
  /** The mounts to make, as mount(8) reads them; called once. */
  finish(plan: { readonly fstab: string; readonly holdsRoot: boolean }): Promise<HolderReady>;
  /** Begins its end; disposing waits for it too. */
  kill(): void;
  /** What the holder itself had to say about a failure, else the failure. */
  complaint(error: unknown): string;
}

/** Throws `sandbox.unavailable` when programs are missing. The scratch folder belongs to the caller. */
export function startHolder(network: Network, scratch: Scratch): HolderProcess {
  const tools = findNamespaceTools();
  const isOpen = network === "all";
  const args = [...UNSHARE, ...(isOpen ? [] : ["--net"]), "--", tools.sh, "-c", HOLDER_SCRIPT, "heddle-holder"];
  const child = spawn(tools.unshare, [...args, scratch.path, isOpen ? "open" : "closed"], {
    cwd: "/",
    env: { LC_ALL: "C" },
    stdio: onlyStandardStreams("pipe", "pipe", "pipe"),
    // Its own session: a ^C at the terminal is for Heddle to handle, not for the holder to die of.
    detached: true,
  });
  // Whoever writes to a holder that has died learns of it by its end.
  child.stdin?.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  const said = listenTo(child);
  let pid: number | undefined;
  const kill = (): void => {
    child.stdin?.destroy();
    // The first process of the pid namespace, not the one that made it: that one ends when all inside are gone, and
    // until then the number cannot mean anybody else.
    if (pid === undefined || child.exitCode !== null) child.kill("SIGKILL");
    else killHolder(pid);
  };
  return {
    tools,
    network,
    scratch,
    alive: said.alive,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null;
    },
    async finish({ fstab, holdsRoot }) {
      writeFileSync(join(scratch.path, "fstab"), fstab, { mode: 0o600 });
      child.stdin?.write(holdsRoot ? "apart\n" : "mount\n");
      const ready = await said.ready;
      pid = ready.pid;
      return ready;
    },
    complaint: (error) => said.complaint(error),
    kill,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
    },
  };
}

function killHolder(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // It may have ended by itself when its input closed.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

interface HolderWords {
  readonly alive: Promise<void>;
  readonly ready: Promise<HolderReady>;
  complaint(error: unknown): string;
}

function listenTo(child: ChildProcess): HolderWords {
  const alive = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<HolderReady>();
  let stdout = "";
  let stderr = "";
  const fail = (reason: string): void => {
    alive.reject(new Error(reason));
    ready.reject(new Error(reason));
  };
  const timer = setTimeout(() => fail("the holder gave no answer"), OPEN_TIMEOUT_MS);
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(0, MAX_STDERR);
  });
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
    if (stdout.startsWith("alive\n")) alive.resolve();
    const said = /^ready (\d+) (\w+)\n/m.exec(stdout);
    if (said === null) return;
    clearTimeout(timer);
    ready.resolve({ pid: Number(said[1]), mapsUser: said[2] === "maps" });
  });
  child.once("close", () => {
    clearTimeout(timer);
    fail("the holder ended");
  });
  child.once("error", (error) => fail(error.message));
  // Each is awaited in its time; until then a failure must not count as unhandled.
  for (const promise of [alive.promise, ready.promise]) promise.catch(() => undefined);
  return {
    alive: alive.promise,
    ready: ready.promise,
    complaint: (error) =>
      [error instanceof Error ? error.message : String(error), stderr.trim()].filter(Boolean).join(": "),
  };
}
