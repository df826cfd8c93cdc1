/**
 * The process that holds a sandbox made of namespaces:
 *
 *   started ─▶ alive (the host allows namespaces and mounts) ─▶ has its plan ─▶ ready (all mounts are made) ─▶ stopped
 *
 * Once it is ready it starts standbys on demand and reports on them.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HeddleError, reasonOf, type Network } from "@heddle/protocol";
import { onlyStandardStreams } from "../commands/inherited-descriptors.ts";
import { childrenOf } from "../commands/proc-stat.ts";
import { sendSignal } from "../commands/process-tree.ts";
import { findConfiner, loaderCommand, machine, type Confiner } from "./confine.ts";
import { findHostTool } from "./host-tools.ts";
import { perlHolder } from "./holder-perl.ts";
import { HOLDER_SCRIPT } from "./holder-script.ts";
import type { Scratch } from "./scratch.ts";

/** A loaded machine with hundreds of mounts needs a second. */
const OPEN_TIMEOUT_MS = 20_000;
const MAX_STDERR = 4096;
const UNSHARE = "--user --map-root-user --mount --propagation private --ipc --pid --fork --kill-child".split(" ");

export type NamespaceTools = ReturnType<typeof findNamespaceTools>;

function findNamespaceTools() {
  need("pivot_root");
  const [unshare, nsenter, setpriv] = [need("unshare"), need("nsenter"), need("setpriv")];
  return { unshare, nsenter, setpriv, mount: need("mount"), sh: need("sh") };
}

function need(name: string): string {
  const path = findHostTool(name);
  if (path === undefined) throw namespacesUnavailable(`the program ${name} is missing; it is part of util-linux`);
  return path;
}

export function namespacesUnavailable(reason: string): HeddleError {
  return new HeddleError("sandbox.unavailable", `namespaces: ${reason}`);
}

export interface HolderReady {
  /** Of the first process of its pid namespace, in the host's numbers. */
  readonly pid: number;
  /** `unshare` can map the caller's own uid; older ones can only map root. Not checked for root. */
  readonly mapsUser: boolean;
  /** The pid namespace limits the number of processes. */
  readonly holdsPids: boolean;
}

export interface HolderPlan {
  readonly fstab: string;
  readonly holdsRoot: boolean;
  /** The script by which a standby enters (standby.ts). */
  readonly enter: string;
  /** The largest pid inside, where the kernel limits it by namespace. */
  readonly maxPid: number | undefined;
  /** Size of the upper layer in memory, or `disk`; absent: no room. */
  readonly room: number | "disk" | undefined;
}

export type HolderProcess = ReturnType<typeof startHolder>;

/** Not tried again in this process. */
let triedOut: Confiner["kind"] | undefined;

/** Throws `sandbox.unavailable` when programs are missing. The scratch folder belongs to the caller. */
export function startHolder(network: Network, scratch: Scratch) {
  const tools = findNamespaceTools();
  const isOpen = network === "all";
  const who = process.getuid?.() === 0 ? "root" : "user";
  const confiner = findConfiner();
  const holder = holderCommand(confiner, tools.sh, { scratch: scratch.path, network: isOpen ? "open" : "closed", who });
  const trial = triedOut === confiner.kind ? [] : loaderCommand(confiner, { writable: [], network });
  const child = spawn(tools.unshare, [...UNSHARE, ...(isOpen ? [] : ["--net"]), "--", ...holder, ...trial], {
    cwd: "/",
    env: { LC_ALL: "C" },
    stdio: onlyStandardStreams("pipe", "pipe", "pipe"),
    // A ^C at the terminal must not end the holder.
    detached: true,
  });
  // Its end is reported elsewhere.
  child.stdin?.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  const listener = listenTo(child);
  let pid: number | undefined;
  const kill = (): void => {
    child.stdin?.destroy();
    // Node sends the signal for a child that could not be started (no descriptors) to a number that nobody has set.
    if (child.pid === undefined) return;
    // The first process of the pid namespace, not the one that made it: that one ends when the namespace is empty, so
    // the number stays valid until then.
    if (pid === undefined || child.exitCode !== null) child.kill("SIGKILL");
    else sendSignal(pid, "SIGKILL");
  };
  return {
    tools,
    network,
    scratch,
    /** Has been tried when the holder is ready. */
    confiner,
    /** Rejects when the host refuses. */
    alive: listener.alive,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null;
    },
    /** All its processes so far, in the host's numbers. */
    pids: (): readonly number[] => treeOf(child.pid),
    /** Called once. */
    async finish({ fstab, holdsRoot, enter, maxPid, room }: HolderPlan): Promise<HolderReady> {
      writeFileSync(join(scratch.path, "fstab"), fstab, { mode: 0o600 });
      writeFileSync(join(scratch.standbys, "enter"), enter, { mode: 0o600 });
      child.stdin?.write(`${holdsRoot ? "apart" : "mount"} ${maxPid ?? "-"} ${room ?? "-"}\n`);
      const ready = await listener.ready;
      triedOut = confiner.kind;
      pid = ready.pid;
      return ready;
    },
    sendLine: (line: string) => void child.stdin?.write(`${line}\n`),
    /** Receives its lines; undefined when it has ended. */
    onLine: listener.onLine,
    /** Its error output for a failure, else the failure. */
    complaint: listener.complaint,
    /** Does not wait; disposing does. */
    kill,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
    },
  };
}

interface HolderOptions {
  readonly scratch: string;
  readonly network: "open" | "closed";
  readonly who: "root" | "user";
}

function holderCommand(confiner: Confiner, sh: string, options: HolderOptions): readonly string[] {
  const { scratch, network, who } = options;
  const known = machine();
  if (confiner.kind === "perl" && known !== undefined) {
    return perlHolder({ ...options, perl: confiner.program, sh, machine: known });
  }
  return [sh, "-c", HOLDER_SCRIPT, "heddle-holder", scratch, network, who];
}

function treeOf(pid: number | undefined): number[] {
  return pid === undefined ? [] : [pid, ...childrenOf(pid).flatMap(treeOf)];
}

function listenTo(child: ChildProcess) {
  const alive = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<HolderReady>();
  let unread = "";
  let stderr = "";
  let listener: (line: string | undefined) => void = () => undefined;
  const fail = (reason: string): void => {
    alive.reject(new Error(reason));
    ready.reject(new Error(reason));
  };
  const timer = setTimeout(() => fail("the holder gave no answer"), OPEN_TIMEOUT_MS);
  const take = (line: string): void => {
    const [word, pid, maps, pids] = line.split(" ");
    if (word === "alive") alive.resolve();
    if (word === "ready") {
      clearTimeout(timer);
      ready.resolve({ pid: Number(pid), mapsUser: maps === "maps", holdsPids: pids === "held" });
    }
    listener(line);
  };
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(0, MAX_STDERR);
  });
  child.stdout?.on("data", (chunk: Buffer) => {
    const lines = (unread + chunk.toString()).split("\n");
    unread = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
  child.once("close", () => {
    clearTimeout(timer);
    fail("the holder ended");
    listener(undefined);
  });
  child.once("error", (error) => fail(reasonOf(error)));
  // Awaited later; until then a failure must not count as unhandled.
  for (const promise of [alive.promise, ready.promise]) promise.catch(() => undefined);
  return {
    alive: alive.promise,
    ready: ready.promise,
    onLine: (next: typeof listener) => void (listener = next),
    complaint: (error: unknown) => [reasonOf(error), stderr.trim()].filter(Boolean).join(": "),
  };
}
