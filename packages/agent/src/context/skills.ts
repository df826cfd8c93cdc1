/**
 * Which skills a turn has, how they are offered (a name and a line each; the rest is read on use), and which of them
 * the user's input names.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { visibleLine, type EventOf, type InputPart } from "@heddle/protocol";
import { installedWith } from "./installed.ts";
import { findSkills, readSkill, type Skill, type SkillsFound } from "@heddle/tools";

/** Below Heddle's home, which only the `skill` tool can read. */
const OWN = "skills";
const FOLDERS = [join(".agents", "skills"), join(".claude", "skills")];
/** Every request pays for the list. */
const MAX_LIST_BYTES = 2048;
const MAX_LINE_CHARS = 240;
/** A message that names more has lost its subject. */
const MAX_MENTIONED = 8;

/** Choices of the owner about skills; read again for every turn. */
export interface SkillChoices {
  /** Folders with skills besides the usual ones; they have the lowest priority. */
  readonly extraRoots: () => readonly string[];
  readonly isEnabled: (skill: Skill) => boolean;
}

export interface SkillOptions {
  readonly folders: readonly string[];
  readonly home: string;
  readonly userHome: string | undefined;
  readonly masked: readonly string[];
  readonly extraRoots?: readonly string[] | undefined;
  readonly disabledPlugins?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

export function ownSkillFolder(home: string): string | undefined {
  const folder = join(home, OWN);
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true ? folder : undefined;
}

export async function loadSkills(options: SkillOptions): Promise<SkillsFound> {
  const { folders, home, userHome, masked, extraRoots = [], disabledPlugins: disabled, signal } = options;
  const near = folders.flatMap((folder) => FOLDERS.map((name) => join(folder, name)));
  const far = userHome === undefined ? [] : [join(userHome, ".agents", "skills")];
  const hidden = { writeRoots: [], masked };
  const parts = await Promise.all([
    findSkills(near, hidden, signal),
    // Masked for the agent's own tools, but the owner put them there.
    findSkills([join(home, OWN)], { writeRoots: [], masked: [] }, signal),
    findSkills([...far, ...extraRoots], hidden, signal),
    pluginSkillsOf(home, disabled),
  ]);
  const byName = new Map<string, Skill>();
  for (const skill of parts.flatMap(({ skills }) => skills)) if (!byName.has(skill.name)) byName.set(skill.name, skill);
  const skills = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { skills, skipped: parts.flatMap(({ skipped }) => skipped) };
}

async function pluginSkillsOf(home: string, disabled: readonly string[] | undefined): Promise<SkillsFound> {
  const read: Parameters<typeof installedWith<SkillsFound>>[1] = async (plugin, { pluginSkills }) => {
    const { skills, skipped } = await pluginSkills(plugin, { writeRoots: [], masked: [] });
    const { id: pluginId, record } = plugin;
    return { skills: skills.map((skill) => ({ ...skill, name: `${record.name}:${skill.name}`, pluginId })), skipped };
  };
  const found = await installedWith(home, read, { disabled });
  return { skills: found.flatMap(({ skills }) => skills), skipped: found.flatMap(({ skipped }) => skipped) };
}

export function skillsText(skills: readonly Skill[], home: string): string | undefined {
  if (skills.length === 0) return undefined;
  const lines: string[] = [];
  let left = MAX_LIST_BYTES - Buffer.byteLength(INTRODUCTION) - MARK_BYTES;
  for (const skill of skills) {
    const line = `- ${skill.name}: ${shortLine(skill.description)} (${isOwn(skill, home) ? "call skill" : visibleLine(skill.path)})`;
    left -= Buffer.byteLength(line) + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const missing = skills.length - lines.length;
  const mark = missing === 0 ? [] : [`[${missing} more left out]`];
  return ["<skills>", INTRODUCTION, ...lines, ...mark, "</skills>"].join("\n");
}

const INTRODUCTION =
  "Guides for kinds of work. When one fits the task, read its file before you begin; paths in it start at its folder.";
const MARK_BYTES = 48;

function shortLine(description: string): string {
  const line = visibleLine(description);
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS - 1)}…` : line;
}

/** Skills named as `$name` in the user's input, in that order. */
export function mentionedSkills(input: readonly InputPart[], skills: readonly Skill[]): Skill[] {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const found = new Set<Skill>();
  for (const part of input) {
    if (part.type !== "text") continue;
    for (const [, name = ""] of part.text.matchAll(
      /(?<![\w$\\/-])\$((?:[\w.-]+:)?[a-z0-9]+(?:-[a-z0-9]+)*)(?![\w-])/g,
    )) {
      const skill = byName.get(name);
      if (skill !== undefined && found.size < MAX_MENTIONED) found.add(skill);
    }
  }
  return [...found];
}

/** The stored text of a skill that is used. A file that was removed since is reported in it. */
export async function skillEvent(
  skill: Skill,
  turnId: string,
  options: Pick<SkillOptions, "home" | "masked" | "signal">,
): Promise<EventOf<"context.added">> {
  const rules = { writeRoots: [], masked: isOwn(skill, options.home) ? [] : options.masked };
  const { text, ...file } = await readSkill(skill.path, rules, options.signal);
  const cut = file.truncatedBytes > 0 ? `\n[${file.truncatedBytes} bytes left out]` : "";
  return {
    type: "context.added",
    v: 1,
    turnId,
    source: "skill",
    name: skill.name,
    // The form that models know from Codex.
    text: `<skill>\n<name>${visibleLine(skill.name)}</name>\n<path>${visibleLine(skill.path)}</path>\n${text.trim()}${cut}\n</skill>`,
    file: { path: skill.path, ...file },
  };
}

function isOwn({ path }: Skill, home: string): boolean {
  return path.startsWith(`${join(home, OWN)}/`);
}
