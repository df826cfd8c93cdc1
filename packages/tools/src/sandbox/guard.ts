/**
 * The part of protection that mounts cannot give. When a sandbox opens it finds the protected paths that exist, so that
 * they can be mounted read-only; after a command it finds those that appeared, and moves them to quarantine. A new
 * repository is judged instead of removed: its hooks must be samples, its configuration harmless.
 */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { REPORTED_NAME } from "../protected.ts";
import { harmfulConfigKey } from "./git-config.ts";
import { isBelow, isWithin } from "./mountinfo.ts";
import { quarantine } from "./quarantine.ts";
import type { ProtectedPathViolation } from "./sandbox.ts";
import { identityOf, isUnnameable, statOrUndefined, TreeIndex, type Special } from "./tree-index.ts";

/** One mount each, about 2 ms; a workspace with more (vendored packages) keeps the rest under watch instead. */
const MAX_PROTECTED_MOUNTS = 256;
const MAX_JUDGED_BYTES = 64 * 1024;

type Verdict = "accept" | "remove" | "report";

export interface GuardOptions {
  readonly writeRoots: readonly string[];
  /** Masked paths that do not exist yet; they are not to be made by a command either. */
  readonly absentMasked: readonly string[];
  readonly quarantineDir: () => Promise<string>;
}

export class Guard {
  readonly #options: GuardOptions;
  readonly #index: TreeIndex;
  /** Under a read-only mount: cannot be changed from inside, only be moved along with a folder above it. */
  readonly #mounted = new Map<string, string>();
  /** Everything else that was there at the start or was judged harmless, with its state at that time. */
  readonly #watched = new Map<string, { readonly special: Special; readonly stamp: string }>();

  /** Names that are not text: known already, so told once. */
  readonly #unnameable = new Set<string>();

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#index = new TreeIndex(options.writeRoots);
  }

  /** What exists now is the owner's. Shallow paths come first when there are more than can be mounted. */
  async start(): Promise<{ protectedPaths: string[]; gitFolders: string[] }> {
    const protectedPaths: string[] = [];
    const gitFolders: string[] = [];
    const specials = (await this.#index.walk()).toSorted((a, b) => depth(a.path) - depth(b.path));
    for (const special of specials) {
      if (isUnnameable(special.name)) this.#unnameable.add(special.path);
      const stat = statOrUndefined(special.path);
      if (stat === undefined) continue;
      if (special.role === "hooks") {
        this.#mounted.set(identityOf(stat), special.name);
      } else if (special.name.toLowerCase() === ".git" && special.kind === "directory") {
        gitFolders.push(special.path);
      } else if (isMountable(special) && protectedPaths.length < MAX_PROTECTED_MOUNTS) {
        this.#mounted.set(identityOf(stat), special.name);
        protectedPaths.push(special.path);
      } else {
        this.#watch(special);
        if (special.kind === "symlink") await this.#addLinkTarget(special.path, protectedPaths);
      }
    }
    return { protectedPaths, gitFolders: gitFolders.slice(0, MAX_PROTECTED_MOUNTS) };
  }

  /** A link cannot be mounted over, but what it points to can. */
  async #addLinkTarget(path: string, protectedPaths: string[]): Promise<void> {
    const target = await realpath(path).catch(() => undefined);
    if (target === undefined || protectedPaths.includes(target)) return;
    if (this.#options.writeRoots.some((root) => isBelow(target, root))) protectedPaths.push(target);
  }

  /** As at the start, except that nothing more is mounted: it is watched. */
  async accept(): Promise<void> {
    for (const special of [...(await this.#index.walk()), ...this.#changedWatches()]) {
      if (isUnnameable(special.name)) this.#unnameable.add(special.path);
      this.#watch(special);
    }
  }

  async sweep(): Promise<ProtectedPathViolation[]> {
    const violations: ProtectedPathViolation[] = [];
    for (const special of [...(await this.#index.walk()), ...this.#changedWatches()]) {
      if (isUnnameable(special.name) && !this.#unnameable.has(special.path)) {
        this.#unnameable.add(special.path);
        violations.push({ path: special.path });
      }
      const stat = statOrUndefined(special.path);
      if (stat === undefined || this.#mounted.get(identityOf(stat)) === special.name) continue;
      if (this.#watched.get(special.path)?.stamp === stampOf(special.path)) continue;
      const verdict = await this.#judge(special);
      if (verdict === "remove") {
        violations.push(await this.#remove(special.path));
        continue;
      }
      if (verdict === "report") violations.push({ path: special.path });
      this.#watch(special);
    }
    for (const path of this.#options.absentMasked) {
      if (statOrUndefined(path) !== undefined) violations.push(await this.#remove(path));
    }
    return violations;
  }

  /** Folders are followed by the index; their own change times say nothing about what is in them. */
  #watch(special: Special): void {
    const stamp = stampOf(special.path);
    if (stamp !== undefined) this.#watched.set(special.path, { special, stamp });
  }

  #changedWatches(): Special[] {
    const changed: Special[] = [];
    for (const [path, { special, stamp }] of this.#watched) {
      const now = stampOf(path);
      if (now === undefined) this.#watched.delete(path);
      else if (now !== stamp) changed.push(special);
    }
    return changed;
  }

  async #judge(special: Special): Promise<Verdict> {
    if (special.name === REPORTED_NAME) return "report";
    if (special.role === "plain") {
      if (special.name.toLowerCase() !== ".git") return "remove";
      if (special.kind === "directory") return "accept";
      return special.kind === "file" && (await this.#pointsToOwnRepository(special.path)) ? "accept" : "remove";
    }
    if (special.role === "hooks") return "remove";
    switch (special.name) {
      case "hooks":
      case "info":
        return special.kind === "directory" ? "accept" : "remove";
      case "commondir":
        return special.role === "worktree" && (await readSmall(special.path))?.trim() === "../.." ? "accept" : "remove";
      default: {
        const text = special.kind === "file" ? await readSmall(special.path) : undefined;
        return text !== undefined && harmfulConfigKey(text) === undefined ? "accept" : "remove";
      }
    }
  }

  /** A `.git` file may only lead to a worktree or submodule of a repository that is itself under guard. */
  async #pointsToOwnRepository(path: string): Promise<boolean> {
    const target = /^gitdir: (.+)$/.exec((await readSmall(path))?.trim() ?? "")?.[1];
    if (target === undefined) return false;
    const real = await realpath(resolve(dirname(path), target)).catch(() => undefined);
    if (real === undefined || !/\/\.git\/(?:worktrees|modules)\//.test(`${real}/`)) return false;
    return this.#options.writeRoots.some((root) => isWithin(real, root));
  }

  async #remove(path: string): Promise<ProtectedPathViolation> {
    const root = this.#options.writeRoots.find((candidate) => isWithin(path, candidate));
    if (root === undefined) return { path };
    const quarantineDir = await this.#options.quarantineDir();
    // Not moved means it is reported all the same: somebody has to look.
    const quarantinedTo = await quarantine({ root, path, quarantineDir }).catch(() => undefined);
    return quarantinedTo === undefined ? { path } : { path, quarantinedTo };
  }
}

/** Attributes are only looked at, and a worktree that is removed takes its own pointer with it. */
function isMountable(special: Special): boolean {
  if (special.name === REPORTED_NAME) return false;
  if (special.role === "worktree" && special.name === "commondir") return false;
  return special.kind === "file" || special.kind === "directory";
}

function stampOf(path: string): string | undefined {
  const stat = statOrUndefined(path);
  if (stat === undefined) return undefined;
  return stat.isDirectory() ? identityOf(stat) : `${identityOf(stat)}:${stat.ctimeNs}:${stat.size}`;
}

function depth(path: string): number {
  return path.split("/").length;
}

async function readSmall(path: string): Promise<string | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined) return undefined;
  try {
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > MAX_JUDGED_BYTES) return undefined;
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}
