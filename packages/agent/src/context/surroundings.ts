/**
 * What the model reads about its environment: workspace, sandbox, the AGENTS.md files that apply and the skills. Read
 * through the same race-free walk as the file tools, so that a link in a hostile repository shows nothing it may not
 * read.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isHeddleError, type Envelope, type EventOf } from "@heddle/protocol";
import { readFileInside, type SkillsFound } from "@heddle/tools";
import { foldersFromRoot } from "./repository.ts";
import { loadSkills, skillsText, type SkillChoices } from "./skills.ts";

/** For all AGENTS.md text together; more would push the task out of the model's view. */
const MAX_GUIDE_BYTES = 32 * 1024;
const GUIDE_NAME = "AGENTS.md";

export type Surroundings = Pick<EventOf<"context.loaded">, "text" | "sources"> & SkillsFound;

export interface SurroundingsOptions {
  readonly workspace: string;
  readonly envelope: Envelope;
  readonly home: string;
  readonly userHome: string | undefined;
  readonly skills: SkillChoices | undefined;
  readonly signal: AbortSignal;
}

export async function loadSurroundings(options: SurroundingsOptions): Promise<Surroundings> {
  const folders = foldersFromRoot(options.workspace);
  const extraRoots = options.skills?.extraRoots();
  const [guides, { skills: found, skipped }] = await Promise.all([
    loadGuides(folders, options),
    loadSkills({ ...options, folders, masked: options.envelope.masked, extraRoots }),
  ]);
  const skills = found.filter((skill) => options.skills?.isEnabled(skill) ?? true);
  const sources = guides.map(({ path, sha256, truncatedBytes }) => ({ path, sha256, truncatedBytes }));
  const parts = [describeEnvironment(options)];
  if (guides.length > 0) parts.push("Guidance from the repository; where two disagree the later one wins.");
  for (const guide of guides) {
    const cut = guide.truncatedBytes > 0 ? `\n[${guide.truncatedBytes} bytes left out]` : "";
    parts.push(`<guide path=${JSON.stringify(guide.path)}>\n${guide.text}${cut}\n</guide>`);
  }
  const offered = skillsText(skills, options.home);
  if (offered !== undefined) parts.push(offered);
  return { text: parts.join("\n\n"), sources, skills, skipped };
}

function describeEnvironment({ workspace, envelope }: SurroundingsOptions): string {
  const writable = envelope.sandbox === "off" ? "everything" : envelope.writeRoots.join(", ") || "nothing";
  return [
    "<environment>",
    `workspace: ${workspace}`,
    `platform: ${process.platform}`,
    `may write: ${writable}`,
    `network: ${envelope.network === "all" ? "on" : "off"}`,
    "</environment>",
  ].join("\n");
}

interface Guide {
  readonly path: string;
  readonly text: string;
  readonly sha256: string;
  readonly truncatedBytes: number;
}

/** From the repository's root down to the workspace: the nearest comes last and wins. */
async function loadGuides(folders: readonly string[], options: SurroundingsOptions): Promise<Guide[]> {
  const guides: Guide[] = [];
  let left = MAX_GUIDE_BYTES;
  // The nearest is read first, so that the cap cuts what matters least.
  for (const folder of folders) {
    const guide = await loadGuide(join(folder, GUIDE_NAME), left, options);
    if (guide === undefined) continue;
    guides.unshift(guide);
    left -= Buffer.byteLength(guide.text);
    if (left <= 0) break;
  }
  return guides;
}

async function loadGuide(path: string, maxBytes: number, options: SurroundingsOptions): Promise<Guide | undefined> {
  // Most of them do not exist, and that must cost nothing.
  if (!existsSync(path)) return undefined;
  const rules = { writeRoots: [], masked: options.envelope.masked };
  try {
    const { bytes, sizeBytes } = await readFileInside(path, rules, { maxBytes, signal: options.signal });
    const text = new TextDecoder().decode(bytes).trim();
    if (text === "") return undefined;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return { path, text, sha256, truncatedBytes: Math.max(0, sizeBytes - bytes.length) };
  } catch (error) {
    // Absent, unreadable, not a plain file or outside the sandbox: no guide. Anything else is a real fault.
    if (isHeddleError(error) && (error.code.startsWith("path.") || SILENT.has(error.details["errno"])))
      return undefined;
    throw error;
  }
}

const SILENT = new Set<unknown>(["ENOENT", "ENOTDIR", "EACCES", "EISDIR", "ELOOP"]);
