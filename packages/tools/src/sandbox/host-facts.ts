/**
 * What the layout has to know about the host: real paths, sockets that programs listen on, folders of programs. Read
 * synchronously, on the way to the first request of a run: dozens of names that the kernel has cached.
 */
import { lstatSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { attempt } from "../attempt.ts";
import { foldersOfSockets, type HostSockets } from "./host-sockets.ts";
import { isInSight, type LayoutInput, type MaskedPath, type Readable } from "./layout.ts";
import { isWithin } from "./mountinfo.ts";
import type { SandboxPolicy } from "./sandbox.ts";
import type { Scratch } from "./scratch.ts";
import { checkedRoots, outermost } from "./write-roots.ts";

export type HostFacts = Omit<LayoutInput, "protectedPaths" | "gitFolders">;

export async function readHostFacts(
  policy: SandboxPolicy,
  { scratch, sockets: hostSockets }: { readonly scratch: Scratch; readonly sockets: HostSockets },
): Promise<HostFacts> {
  const masked = existingPaths(policy.masked);
  const sockets = hostSockets.look();
  const { workspace, writeRoots } = checkedRoots(policy);
  const needsDeadSocket =
    sockets.some((path) => isInSight(path, { workspace, writeRoots })) || masked.some(({ kind }) => kind === "socket");
  return {
    workspace,
    writeRoots,
    masked,
    sockets,
    socketFolders: foldersOfSockets(sockets),
    readable: policy.readRoots === undefined ? undefined : readableOf(policy.readRoots),
    visible: policy.readRoots === undefined ? visibleFolders(policy) : [],
    runFolders: realFolders(["/run", "/var/run"]),
    temporary: [
      ...realFolders(["/tmp"]).map((path) => ({ path, source: scratch.tmp })),
      ...realFolders(["/var/tmp"]).map((path) => ({ path, source: scratch.varTmp })),
    ],
    emptyFile: scratch.emptyFile,
    deadSocket: needsDeadSocket ? await scratch.deadSocket() : "",
  };
}

function existingPaths(paths: readonly string[]): MaskedPath[] {
  const found: MaskedPath[] = [];
  for (const path of paths) {
    const real = realpathOf(path);
    const stat = real === undefined ? undefined : statOf(real);
    if (real === undefined || stat === undefined) continue;
    found.push({ path: real, kind: stat.isDirectory() ? "directory" : stat.isSocket() ? "socket" : "file" });
  }
  return found;
}

/** As many as the kernel follows. */
const MAX_LINKS = 40;

/**
 * A name with a link on its way shows the link alone: an agent may have put it there, and an envelope lists where its own
 * links lead. What does not exist needs no place. undefined: everything.
 */
function readableOf(paths: readonly string[]): Readable | undefined {
  if (paths.includes("/")) return undefined;
  const links = new Map(paths.flatMap(linksOn));
  return {
    roots: outermost(paths.filter((path) => realpathOf(path) === path)),
    links: [...links].map(([path, target]) => ({ path, target })),
  };
}

/** The links that the kernel follows on its way to a path. */
function linksOn(path: string): [path: string, target: string][] {
  const found: [string, string][] = [];
  let pending = path.split("/").filter(Boolean);
  let folder = "/";
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    const entry = join(folder, name);
    const target = attempt(() => readlinkSync(entry));
    if (target === undefined) folder = entry;
    else {
      found.push([entry, target]);
      if (found.length > MAX_LINKS) return [];
      pending = [...resolve(folder, target).split("/").filter(Boolean), ...pending];
      folder = "/";
    }
  }
  return found;
}

/** /var/run is a link to /run almost everywhere; then covering /run is enough. */
function realFolders(paths: readonly string[]): string[] {
  return paths.filter((path) => realpathOf(path) === path && statOf(path)?.isDirectory() === true);
}

/** Programs may live below /tmp or /run (a checkout with its own node, some distributions); so may a home. */
function visibleFolders(policy: SandboxPolicy): { source: string; path: string }[] {
  const wanted = [homedir(), dirname(process.execPath), ...(policy.visible ?? [])];
  for (const folder of (process.env["PATH"] ?? "").split(":")) {
    if (!folder.startsWith("/")) continue;
    // The entries of node_modules/.bin are links into the folder above it.
    wanted.push(basename(folder) === ".bin" ? dirname(folder) : folder);
  }
  if (policy.network === "all") wanted.push("/etc/resolv.conf");
  const visible: { source: string; path: string }[] = [];
  for (const spelled of wanted) {
    const source = realpathOf(spelled);
    if (source === undefined || source === "/") continue;
    // Mounts have one spelling. After a link `..` leads elsewhere than it reads.
    const plain = resolve(spelled);
    const path = realpathOf(plain) === source ? plain : source;
    if (policy.masked.some((masked) => isWithin(path, masked))) continue;
    // A link is followed inside too, so its target has to be visible as well.
    visible.push({ source, path: path === "/etc/resolv.conf" ? source : path });
    if (source !== path) visible.push({ source, path: source });
  }
  return visible;
}

function realpathOf(path: string): string | undefined {
  return attempt(() => realpathSync.native(path));
}

function statOf(path: string): Stats | undefined {
  return attempt(() => lstatSync(path));
}
