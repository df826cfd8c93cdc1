/**
 * What programs need to run: `system` among the read roots of an envelope. The folders that a distribution gives its
 * programs, the Node that runs, and the folders of PATH that lie in nobody's home. Of settings only what every user of the
 * machine may read: the rest is masked.
 */
import { lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, dirname, isAbsolute, join, normalize } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { attempt } from "../attempt.ts";
import { isInside } from "../calls/call-path.ts";

const OF_A_DISTRIBUTION = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/etc",
  "/nix/store",
  "/gnu/store",
  // Where /etc/ssl leads to in some distributions.
  "/var/lib/ca-certificates",
  // How many processors and how much memory there is.
  "/sys/devices/system",
  "/sys/fs/cgroup",
] as const;
const SETTINGS = ["/etc", "/usr/local/etc"] as const;
const HOMES = ["/home", "/root", "/Users"] as const;
/** A machine has some thousands of settings. */
const MAX_SETTINGS = 50_000;
/** Each is a mount. */
const MAX_CLOSED = 1000;

export interface SystemFolders {
  /** Absolute; those that exist. */
  readonly folders: readonly string[];
  /** Inside them, and not for everybody. */
  readonly closed: readonly string[];
}

/** A turn resolves several envelopes, and to look at a thousand settings takes some 20 ms. */
const KEPT_MS = 10_000;
let kept: { readonly key: string; readonly at: number; readonly found: SystemFolders } | undefined;

/** Throws `envelope.invalid` where there are too many settings to look at or to mask. */
export function systemFolders(path = process.env["PATH"] ?? "", node = process.execPath): SystemFolders {
  const key = `${path}\0${node}`;
  if (kept?.key === key && performance.now() - kept.at < KEPT_MS) return kept.found;
  const found = findFolders(path, node);
  kept = { key, at: performance.now(), found };
  return found;
}

function findFolders(path: string, node: string): SystemFolders {
  const folders = [...OF_A_DISTRIBUTION, ...path.split(delimiter).flatMap(toolchainOf), ...foldersOfNode(node)];
  return {
    folders: [...new Set(folders)].filter((folder) => attempt(() => statSync(folder)) !== undefined),
    closed: SETTINGS.flatMap(closedIn),
  };
}

/** The folder around `bin` has the libraries; one at the top of the machine has much else too. */
function toolchainOf(folder: string): string[] {
  const given = normalize(folder).replace(/\/$/, "");
  if (!isAbsolute(folder) || given === "" || isOfHome(given)) return [];
  const around = dirname(given);
  const isTop = around === "/" || dirname(around) === "/";
  const isToolchain = ["bin", "sbin", ".bin"].includes(basename(given)) && !isTop && !isOfHome(around);
  return [isToolchain ? around : given];
}

/** In a home too: a Node that its user installed there is still the one that runs. */
function foldersOfNode(node: string): string[] {
  const real = realOf(node);
  const folder = dirname(real);
  return [holdsHome(folder) ? real : folder, join(dirname(folder), "lib/node_modules")];
}

/** In one, or with one inside. */
function isOfHome(path: string): boolean {
  const homes = [...HOMES, ...ownHome()];
  return [path, realOf(path)].some((one) => homes.some((home) => isInside(one, home)) || holdsHome(one));
}

function holdsHome(path: string): boolean {
  return ownHome().some((home) => isInside(home, path));
}

function ownHome(): string[] {
  return [homedir(), realOf(homedir())];
}

function closedIn(top: string): string[] {
  const closed: string[] = [];
  let seen = 0;
  const look = (path: string): void => {
    const stat = attempt(() => lstatSync(path));
    seen += 1;
    if (seen > MAX_SETTINGS || closed.length > MAX_CLOSED) throw tooMany(top);
    if (stat === undefined || stat.isSymbolicLink()) return;
    const needed = stat.isDirectory() ? 0o005 : 0o004;
    if ((stat.mode & needed) !== needed) closed.push(path);
    else if (stat.isDirectory()) for (const name of attempt(() => readdirSync(path)) ?? []) look(join(path, name));
  };
  look(top);
  return closed;
}

function tooMany(top: string): HeddleError {
  const most = `${MAX_SETTINGS} files, or more than ${MAX_CLOSED} that are not for everybody`;
  const message = `${top} has more than ${most}: "system" cannot be read on this machine; leave \`read\` out`;
  return new HeddleError("envelope.invalid", message);
}

function realOf(path: string): string {
  return attempt(() => realpathSync.native(path)) ?? path;
}
