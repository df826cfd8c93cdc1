/**
 * The protection that mounts cannot give. When a sandbox opens it finds the protected paths, so that they can be
 * mounted read-only, and keeps copies of those that cannot. After a command it moves new ones to quarantine and puts
 * changed ones back. A new repository is judged, not removed (`git-folder.ts`).
 */
import { realpath } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { identityOf } from "../files/path-walk.ts";
import { openUp } from "./descriptor-walk.ts";
import { judgeGit, namedByOwner, targetOf } from "./git-folder.ts";
import { isBelow } from "./mountinfo.ts";
import { filesWithMoreNames, isSameState, OwnedFiles, rootOf, stampOf, type OwnedBounds } from "./owned-files.ts";
import { isText, toRaw, toSystem, toText, type RawPath } from "./raw-path.ts";
import type { ProtectedPathViolation } from "./sandbox.ts";
import { lastPart, Slice, statRaw, TreeIndex, type Special } from "./tree-index.ts";

/**
 * A mount costs a quarter of a millisecond when the sandbox opens, and folders above it cannot be removed from inside:
 * the nearest paths get one, others (vendored packages) are kept and put back instead.
 */
const MAX_PROTECTED_MOUNTS = 256;
/** Closed folders inside one another; each walk opens one level. */
const MAX_OPENINGS = 64;

/** Walks per sweep; a command that keeps making new ones is left to the next sweep. */
const MAX_ROUNDS = 4;

type Verdict = "accept" | "depends" | "remove" | "report";

export interface GuardOptions {
  readonly writeRoots: readonly string[];
  /** Masked paths that do not exist; a command must not make them either. */
  readonly absentMasked: readonly string[];
  readonly quarantineDir: () => Promise<string>;
  readonly bounds?: OwnedBounds & { readonly mounts: number };
}

export class Guard {
  readonly #options: GuardOptions;
  readonly #roots: readonly RawPath[];
  readonly #index: TreeIndex;
  /** Under a read-only mount: unchangeable from inside, but it moves with a folder above it. */
  readonly #mounted = new Map<string, string>();
  readonly #owned: OwnedFiles;
  readonly #maxMounts: number;
  /** What was judged, with its state then; without a state it is judged every time. */
  readonly #watched = new Map<RawPath, { readonly special: Special; readonly stamp: string | undefined }>();
  /** Where the owner's pointers pointed. */
  readonly #ownersTargets = new Map<RawPath, RawPath>();
  readonly #absent: Set<RawPath>;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#roots = options.writeRoots.map(toRaw);
    this.#index = new TreeIndex(this.#roots);
    this.#owned = new OwnedFiles(options.bounds);
    this.#maxMounts = options.bounds?.mounts ?? MAX_PROTECTED_MOUNTS;
    this.#absent = new Set(options.absentMasked.map(toRaw));
  }

  /** What exists now is the owner's. Throws `sandbox.unavailable` when it is more than can be kept. */
  async start(): Promise<{ protectedPaths: string[]; gitFolders: string[] }> {
    const mounts: RawPath[] = [];
    const gitFolders: RawPath[] = [];
    const found = await this.#index.walk();
    for (const special of [...nearestFirst(found, this.#roots), ...this.#namedByOwner(found)]) {
      const { path, kind, matter } = special;
      if (matter === "repository" && kind === "directory") gitFolders.push(path);
      else if (isOnlyWatched(special)) this.#watchOwners(special);
      else if (matter === "closed") this.#mountClosed(special, mounts);
      else if (matter !== "hook") await this.#protect(special, mounts);
    }
    // Hooks are mounted or kept with their folder.
    for (const special of found) {
      if (special.matter === "hook" && !this.#owned.covers(special.path)) this.#markMounted(special);
    }
    const isPin = (path: RawPath): boolean => isText(path) && statRaw(path)?.isDirectory() === true;
    return {
      protectedPaths: mounts.map(toText),
      gitFolders: gitFolders.filter(isPin).slice(0, this.#maxMounts).map(toText),
    };
  }

  async #protect(special: Special, mounts: RawPath[]): Promise<void> {
    const { path, kind } = special;
    if (special.matter === "repository") this.#rememberTarget(special);
    if (statRaw(path) === undefined) return;
    const isMountable = (kind === "file" || kind === "directory") && isText(path);
    if (!isMountable || mounts.length >= this.#maxMounts) {
      this.#owned.keep(path);
      if (kind === "symlink") await this.#mountLinkTarget(path, mounts);
      return;
    }
    this.#markMounted(special);
    mounts.push(path);
    for (const file of filesWithMoreNames(path)) this.#owned.keep(file);
  }

  #markMounted({ path, name }: Special): void {
    const stat = statRaw(path);
    if (stat !== undefined) this.#mounted.set(identityOf(stat), name);
  }

  /** A command could open a folder that cannot be read now. */
  #mountClosed(special: Special, mounts: RawPath[]): void {
    const { path } = special;
    if (mounts.length >= this.#maxMounts || !isText(path) || this.#roots.includes(path)) {
      throw new HeddleError(
        "sandbox.unavailable",
        `${toText(path)} cannot be read, so changes made there could not be detected; make it readable ` +
          "(chmod u+rx), or move it out of the workspace",
      );
    }
    this.#markMounted(special);
    mounts.push(path);
  }

  async #mountLinkTarget(path: RawPath, mounts: RawPath[]): Promise<void> {
    const target = await realpath(toSystem(path), "latin1").catch(() => undefined);
    if (target === undefined || mounts.some((other) => other === target)) return;
    if (!this.#roots.some((root) => isBelow(target, root)) || this.#owned.covers(target)) return;
    if (mounts.length >= this.#maxMounts || !isText(target)) this.#owned.keep(target);
    else mounts.push(target);
  }

  /** A program of the workspace that the owner's git runs is protected like one in the git folder. */
  #namedByOwner(found: readonly Special[]): Special[] {
    const named = new Map<RawPath, Special>();
    for (const { path, name, kind, matter } of found) {
      if (matter !== "git" || kind !== "file" || !name.toLowerCase().startsWith("config")) continue;
      for (const target of namedByOwner(path, this.#roots)) {
        const stat = statRaw(target);
        if (stat === undefined) this.#absent.add(target);
        else {
          const targetKind = stat.isDirectory() ? "directory" : stat.isFile() ? "file" : "symlink";
          named.set(target, { path: target, name: lastPart(target), kind: targetKind, matter: "name" });
        }
      }
    }
    for (const { path } of found) named.delete(path);
    return [...named.values()];
  }

  #watchOwners(special: Special): void {
    this.#rememberTarget(special);
    this.#watch(special, stampOf(special.path));
  }

  #rememberTarget({ path, kind, matter }: Special): void {
    if (kind !== "file" || (matter !== "repository" && lastPart(path).toLowerCase() !== "commondir")) return;
    const target = targetOf(path);
    if (target !== undefined) this.#ownersTargets.set(path, target.real);
    this.#watched.set(path, { special: { path, kind, matter, name: lastPart(path) }, stamp: undefined });
  }

  /** As in `start`, but without new mounts. */
  async accept(): Promise<void> {
    for (const path of this.#owned.changed({ byContent: false })) this.#owned.keep(path);
    for (const special of [...(await this.#index.walk()), ...this.#changedWatches({ byContent: false })]) {
      if (this.#isMounted(special) || this.#owned.covers(special.path)) continue;
      const isFolderOfGit = special.kind === "directory" && special.matter !== "name" && special.matter !== "hook";
      if (isOnlyWatched(special) || isFolderOfGit) this.#watchOwners(special);
      else {
        this.#rememberTarget(special);
        this.#owned.keep(special.path);
      }
    }
  }

  /**
   * Moves away what appeared and puts back what changed. The last sweep, with no process inside, also compares
   * contents: a program that has mapped a file can change it without changing its times.
   */
  async sweep({ isLast }: { readonly isLast: boolean }): Promise<ProtectedPathViolation[]> {
    const violations = new Map<string, ProtectedPathViolation>();
    // After a removal the rest may mean something else, such as a pointer or a former part of a repository.
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const found = await this.#look(isLast);
      for (const violation of found) violations.set(violation.quarantinedTo ?? violation.path, violation);
      if (found.every(({ quarantinedTo }) => quarantinedTo === undefined)) break;
    }
    return [...violations.values()];
  }

  async #look(isLast: boolean): Promise<ProtectedPathViolation[]> {
    const violations: ProtectedPathViolation[] = [];
    for (const path of this.#owned.changed({ byContent: isLast })) violations.push(await this.#putBack(path));
    const found = await this.#walkAll();
    const slice = new Slice();
    for (const special of [...found, ...this.#changedWatches({ byContent: isLast })]) {
      const { path } = special;
      if (slice.isOver) await slice.next();
      // Taken before judging, so that a change meanwhile shows at the next walk.
      const stamp = stampOf(path);
      if (stamp === undefined || this.#owned.covers(path)) continue;
      const watched = this.#watched.get(path);
      if (!isLast && watched?.stamp === stamp) continue;
      const verdict = this.#isMounted(special) ? this.#judgeOwners(special) : this.#judge(special);
      if (verdict === "remove" && !this.#owned.follow(path)) violations.push(await this.#remove(path));
      if (verdict === "report" && !isSameState(watched?.stamp, stamp)) violations.push({ path: toText(path) });
      if (verdict !== "remove") this.#watch(special, verdict === "depends" ? undefined : stamp);
    }
    this.#owned.forgetGone();
    for (const path of this.#absent) if (statRaw(path) !== undefined) violations.push(await this.#remove(path));
    return violations;
  }

  /** Opens closed folders, so that everything is seen. */
  async #walkAll(): Promise<Special[]> {
    const found: Special[] = [];
    for (let round = 0; round < MAX_OPENINGS; round += 1) {
      const seen = await this.#index.walk();
      const closed = seen.filter((special) => special.matter === "closed" && !this.#isMounted(special));
      found.push(...seen.filter(({ matter }) => matter !== "closed"));
      if (closed.length === 0) return found;
      const opened = await Promise.all(closed.map(({ path }) => this.#openUp(path)));
      if (!opened.includes(true)) return [...found, ...closed];
    }
    return [...found, ...(await this.#index.walk())];
  }

  async #openUp(path: RawPath): Promise<boolean> {
    const before = statRaw(path)?.mode;
    const root = rootOf(path, this.#roots);
    if (root === undefined || root === path) return false;
    await openUp({ root, path }).catch(() => undefined);
    return statRaw(path)?.mode !== before;
  }

  #isMounted({ path, name }: Special): boolean {
    const stat = statRaw(path);
    return stat !== undefined && this.#mounted.get(identityOf(stat)) === name;
  }

  #watch(special: Special, stamp: string | undefined): void {
    this.#watched.set(special.path, { special, stamp });
  }

  #changedWatches({ byContent }: { readonly byContent: boolean }): Special[] {
    const changed: Special[] = [];
    for (const [path, { special, stamp }] of this.#watched) {
      const now = stampOf(path);
      if (now === undefined) this.#watched.delete(path);
      else if (byContent || now !== stamp) changed.push({ ...special, kind: kindNow(path) });
    }
    return changed;
  }

  #judge(special: Special): Verdict {
    switch (special.matter) {
      case "reported":
        return "report";
      case "name":
      case "hook":
      case "turned":
      case "closed":
        return "remove";
      case "branch":
      case "repository":
      case "git":
      case "odd":
      case "todo": {
        const verdict = judgeGit(special, this.#roots);
        return verdict === "remove" && this.#leadsWhereItLed(special) ? "depends" : verdict;
      }
    }
  }

  /** It is unchangeable, but not what is at its target. One that points nowhere is harmless. */
  #judgeOwners(special: Special): Verdict {
    if (special.matter !== "repository" || special.kind !== "file") return "accept";
    return targetOf(special.path) === undefined ? "depends" : this.#judge(special);
  }

  #leadsWhereItLed({ path, kind }: Special): boolean {
    const before = kind === "file" ? this.#ownersTargets.get(path) : undefined;
    return before !== undefined && targetOf(path)?.real === before;
  }

  async #putBack(path: RawPath): Promise<ProtectedPathViolation> {
    const violation = statRaw(path) === undefined ? { path: toText(path) } : await this.#remove(path);
    const root = rootOf(path, this.#roots);
    // Reported in any case, and tried again at the next walk.
    if (root !== undefined) await this.#owned.putBack({ root, path }).catch(() => undefined);
    return violation;
  }

  async #remove(path: RawPath): Promise<ProtectedPathViolation> {
    const root = rootOf(path, this.#roots);
    if (root === undefined) return { path: toText(path) };
    const { quarantine } = await import("./quarantine.ts");
    const quarantineDir = await this.#options.quarantineDir();
    // Reported in any case: the owner has to look.
    const quarantinedTo = await quarantine({ root, path, quarantineDir }).catch(() => undefined);
    return quarantinedTo === undefined ? { path: toText(path) } : { path: toText(path), quarantinedTo };
  }
}

/** Attributes are only reported, a removed worktree takes its pointer along, and git changes the others. */
function isOnlyWatched({ name, matter }: Special): boolean {
  if (matter === "branch" || matter === "reported" || matter === "odd" || matter === "todo" || matter === "turned")
    return true;
  return matter === "git" && name.toLowerCase() === "commondir";
}

function kindNow(path: RawPath): Special["kind"] {
  const stat = statRaw(path);
  if (stat?.isDirectory() === true) return "directory";
  if (stat?.isSymbolicLink() === true) return "symlink";
  return stat?.isFile() === true ? "file" : "other";
}

/** First what lies next to a root or in its own git folder, then by age. */
function nearestFirst(found: readonly Special[], roots: readonly RawPath[]): Special[] {
  const ranked = found.map((special) => {
    const { path } = special;
    const isNext = roots.some(
      (root) =>
        isBelow(path, root) &&
        !path
          .slice(root.length + 1)
          .replace(/^\.git\//, "")
          .includes("/"),
    );
    return { special, depth: isNext ? 0 : path.split("/").length, birth: statRaw(path)?.birthtimeNs ?? 0n };
  });
  return ranked
    .toSorted((one, other) => one.depth - other.depth || Number(one.birth - other.birth))
    .map(({ special }) => special);
}
