/**
 * What the layout has to know about the host: real paths, sockets that programs listen on, folders of programs.
 * Read once when a sandbox opens.
 */
import { lstat, readFile, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname } from "node:path";
import { HeddleError } from "@heddle/protocol";
import type { LayoutInput, Place } from "./layout.ts";
import { isWithin } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";
import type { SandboxPolicy } from "./sandbox.ts";
import type { Scratch } from "./scratch.ts";

/** A host has a few dozen; the bound keeps a strange one from making thousands of mounts. */
const MAX_SOCKETS = 128;

export type HostFacts = Omit<LayoutInput, "protectedPaths" | "gitFolders">;

export async function readHostFacts(policy: SandboxPolicy, scratch: Scratch): Promise<HostFacts> {
  return {
    workspace: await realFolder(policy.workspace),
    writeRoots: await outermost(await Promise.all(policy.writeRoots.map(realFolder))),
    masked: await existingPlaces(policy.masked),
    sockets: await listeningSockets(),
    visible: await visibleFolders(policy),
    runFolders: await realFolders(["/run", "/var/run"]),
    temporary: (
      await Promise.all([
        realFolders(["/tmp"]).then((paths) => paths.map((path) => ({ path, source: scratch.tmp }))),
        realFolders(["/var/tmp"]).then((paths) => paths.map((path) => ({ path, source: scratch.varTmp }))),
      ])
    ).flat(),
    emptyFile: scratch.emptyFile,
    deadSocket: scratch.deadSocket,
  };
}

async function realFolder(path: string): Promise<string> {
  const real = await realpath(path).catch((cause: unknown) => {
    throw new HeddleError("workspace.missing", `${path} does not exist`, { cause });
  });
  if (!(await lstat(real)).isDirectory()) throw new HeddleError("workspace.missing", `${real} is not a folder`);
  return real;
}

async function outermost(roots: readonly string[]): Promise<string[]> {
  return [...new Set(roots)].filter((root) => !roots.some((other) => root !== other && root.startsWith(`${other}/`)));
}

async function existingPlaces(paths: readonly string[]): Promise<Place[]> {
  const places: Place[] = [];
  for (const path of paths) {
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined) continue;
    const stat = await lstat(real);
    places.push({ path: real, kind: stat.isDirectory() ? "directory" : stat.isSocket() ? "socket" : "file" });
  }
  return places;
}

/** /var/run is a link to /run almost everywhere; then covering /run is enough. */
async function realFolders(paths: readonly string[]): Promise<string[]> {
  const real: string[] = [];
  for (const path of paths) {
    const resolved = await realpath(path).catch(() => undefined);
    if (resolved !== undefined && !real.includes(resolved) && (await lstat(resolved)).isDirectory())
      real.push(resolved);
  }
  return real.filter((path) => paths.includes(path));
}

async function listeningSockets(): Promise<string[]> {
  const table = await readFile("/proc/net/unix", "utf8").catch(() => "");
  const paths = new Set<string>();
  for (const line of table.split("\n").slice(1)) {
    // Num RefCount Protocol Flags Type St Inode Path: the path is the rest of the line and starts with a slash.
    const path = /^(?:\S+\s+){6}\S+ (\/.*)$/.exec(line)?.[1];
    if (path === undefined || paths.size >= MAX_SOCKETS) continue;
    const real = await realpath(path).catch(() => undefined);
    // Sockets come and go while their list is read.
    const stat = real === undefined ? undefined : await lstat(real).catch(() => undefined);
    if (real !== undefined && stat?.isSocket() === true && isReachable(real)) paths.add(real);
  }
  return [...paths];
}

/** Programs may live below /tmp or /run (a checkout with its own node, some distributions); so may a home. */
async function visibleFolders(policy: SandboxPolicy): Promise<{ source: string; path: string }[]> {
  const wanted = [homedir(), dirname(process.execPath), ...(policy.visible ?? [])];
  for (const folder of (process.env["PATH"] ?? "").split(":")) {
    if (!folder.startsWith("/")) continue;
    // The entries of node_modules/.bin are links into the folder above it.
    wanted.push(basename(folder) === ".bin" ? dirname(folder) : folder);
  }
  if (policy.network === "all") wanted.push("/etc/resolv.conf");
  const visible: { source: string; path: string }[] = [];
  for (const path of wanted) {
    const source = await realpath(path).catch(() => undefined);
    if (source === undefined || source === "/" || policy.masked.some((masked) => isWithin(path, masked))) continue;
    // A link is followed inside too, so what it points to has to be there; without a link both are the same.
    visible.push({ source, path: path === "/etc/resolv.conf" ? source : path });
    if (source !== path) visible.push({ source, path: source });
  }
  return visible;
}
