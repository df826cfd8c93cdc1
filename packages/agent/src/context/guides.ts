/**
 * The guides that apply in a workspace: the owner's own, from the home of Heddle or of Codex, then those of the
 * repository, from its root down. Those of a repository are read through the same race-free walk as the file tools, so
 * that a link in a hostile one shows nothing it may not read.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isHeddleError, type TurnSettings } from "@heddle/protocol";
import { readFileInside } from "@heddle/tools";
import { foldersFromRoot } from "./repository.ts";

/** For the guides of a repository together, and for the owner's; more would push the task out of the model's view. */
const MAX_GUIDE_BYTES = 32 * 1024;
const OVERRIDE = "AGENTS.override.md";
const GUIDE = "AGENTS.md";

export interface Guide {
  readonly path: string;
  readonly text: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly truncatedBytes: number;
}

export interface GuideOptions {
  readonly workspace: string;
  readonly home: string;
  /** Codex's, where its configuration is used. The owner's own guide may be there, if it is not in Heddle's. */
  readonly codexHome: string | undefined;
  readonly masked: readonly string[];
  readonly settings: Pick<TurnSettings, "guideNames" | "guideBytes">;
  readonly signal: AbortSignal;
}

/** The nearest comes last and wins. */
export async function loadGuides(options: GuideOptions): Promise<readonly Guide[]> {
  const own = await ownGuide(options);
  return [...(own === undefined ? [] : [own]), ...(await repositoryGuides(options))];
}

/** Masked for the agent's own tools, but the owner put it there. A blank one gives way to the next. */
async function ownGuide({ home, codexHome, signal }: GuideOptions): Promise<Guide | undefined> {
  const rules = { writeRoots: [], masked: [] };
  const homes = codexHome === undefined ? [home] : [home, codexHome];
  for (const file of homes.flatMap((home) => [join(home, OVERRIDE), join(home, GUIDE)])) {
    const guide = await loadGuide(file, rules, { maxBytes: MAX_GUIDE_BYTES, signal });
    if (typeof guide === "object") return guide;
  }
  return undefined;
}

async function repositoryGuides({ workspace, masked, settings, signal }: GuideOptions): Promise<readonly Guide[]> {
  const { guideNames = [], guideBytes: maxBytes = MAX_GUIDE_BYTES } = settings;
  const rules = { writeRoots: [], masked };
  const guides: Guide[] = [];
  let left = maxBytes;
  // The nearest is read first, so that the cap cuts what matters least.
  for (const folder of foldersFromRoot(workspace)) {
    if (left <= 0) break;
    // The first that is there counts: a blank AGENTS.override.md puts the others out of force.
    for (const name of [OVERRIDE, GUIDE, ...guideNames]) {
      const guide = await loadGuide(join(folder, name), rules, { maxBytes: left, signal });
      if (guide === undefined) continue;
      if (guide === BLANK) break;
      guides.unshift(guide);
      left -= guide.bytes;
      break;
    }
  }
  return guides;
}

const BLANK = "blank";

async function loadGuide(
  path: string,
  rules: Parameters<typeof readFileInside>[1],
  limits: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<Guide | typeof BLANK | undefined> {
  // Most of them do not exist, and that must cost nothing.
  if (!existsSync(path)) return undefined;
  try {
    const { bytes, sizeBytes } = await readFileInside(path, rules, limits);
    const text = new TextDecoder().decode(bytes).trim();
    if (text === "") return BLANK;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const truncatedBytes = Math.max(0, sizeBytes - bytes.length);
    return { path, text, sha256, bytes: Buffer.byteLength(text), truncatedBytes };
  } catch (error) {
    // Absent, unreadable, not a plain file or outside the sandbox: no guide. Anything else is a real fault.
    if (isHeddleError(error) && (error.code.startsWith("path.") || SILENT.has(error.details["errno"])))
      return undefined;
    throw error;
  }
}

const SILENT = new Set<unknown>(["ENOENT", "ENOTDIR", "EACCES", "EISDIR", "ELOOP"]);
