/**
 * Skills: folders with a SKILL.md that tells an agent how to do one kind of work. They are found by their heads and read
 * through the race-free walk, so that a link in a hostile repository shows nothing that may not be read. Nothing of a
 * skill is ever executed here.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { listInside, readFileInside } from "../files/paths.ts";
import type { PathRules } from "../files/path-rules.ts";
import { isSkillName, parseSkillHead } from "./skill-head.ts";

export interface Skill {
  readonly name: string;
  /** One line. */
  readonly description: string;
  /** Absolute path of its SKILL.md. */
  readonly path: string;
  /** Of an installed plugin; its name begins with the plugin's. */
  readonly pluginId?: string;
}

export interface SkillsFound {
  /** One for each name: the first folder that has it wins. */
  readonly skills: readonly Skill[];
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
}

export interface SkillText {
  readonly text: string;
  readonly sha256: string;
  readonly truncatedBytes: number;
}

const FILE_NAME = "SKILL.md";
/** A hostile repository may have more. */
const MAX_FOLDERS = 200;
const MAX_HEAD_BYTES = 8 * 1024;
const MAX_TEXT_BYTES = 32 * 1024;

/** Looks into each folder in turn, the nearest first. A folder that is not there is no matter. */
export async function findSkills(
  folders: readonly string[],
  rules: PathRules,
  signal: AbortSignal,
): Promise<SkillsFound> {
  const skills = new Map<string, Skill>();
  const skipped: { path: string; reason: string }[] = [];
  for (const folder of folders) {
    for (const name of await subfolders(folder, rules)) {
      const path = join(folder, name, FILE_NAME);
      const read = await readHead(path, rules, signal);
      if (read.kind === "bad") skipped.push({ path, reason: read.reason });
      if (read.kind === "skill" && !skills.has(read.skill.name)) skills.set(read.skill.name, read.skill);
    }
  }
  return { skills: [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), skipped };
}

/** The whole file, up to a cap. Throws when it cannot be read any more. */
export async function readSkill(path: string, rules: PathRules, signal: AbortSignal): Promise<SkillText> {
  const { bytes, sizeBytes } = await readFileInside(path, rules, { maxBytes: MAX_TEXT_BYTES, signal });
  return {
    text: new TextDecoder().decode(bytes),
    sha256: createHash("sha256").update(bytes).digest("hex"),
    truncatedBytes: Math.max(0, sizeBytes - bytes.length),
  };
}

async function subfolders(folder: string, rules: PathRules): Promise<string[]> {
  // Most of them do not exist, and that check must be cheap.
  if (!existsSync(folder)) return [];
  try {
    const { entries } = await listInside(folder, rules, { maxEntries: MAX_FOLDERS });
    return entries
      .filter(({ kind }) => kind === "directory" || kind === "symlink")
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    if (isHeddleError(error)) return [];
    throw error;
  }
}

type HeadRead =
  | { readonly kind: "skill"; readonly skill: Skill }
  | { readonly kind: "none" }
  | { readonly kind: "bad"; readonly reason: string };

async function readHead(path: string, rules: PathRules, signal: AbortSignal): Promise<HeadRead> {
  let text: string;
  try {
    const { bytes } = await readFileInside(path, rules, { maxBytes: MAX_HEAD_BYTES, signal });
    text = new TextDecoder().decode(bytes);
  } catch (error) {
    if (!isHeddleError(error) || signal.aborted) throw error;
    if (error.details["errno"] === "ENOENT" || error.details["errno"] === "ENOTDIR") return { kind: "none" };
    return { kind: "bad", reason: error.message };
  }
  const head = parseSkillHead(text);
  if (head.kind === "bad") return head;
  const name = head.name ?? basename(join(path, ".."));
  if (!isSkillName(name)) return { kind: "bad", reason: "neither its head nor its folder gives it a usable name" };
  return { kind: "skill", skill: { name, description: head.description, path } };
}
