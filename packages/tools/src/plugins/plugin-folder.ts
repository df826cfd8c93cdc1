/**
 * A plugin is a folder with a manifest that names skills, hooks and MCP servers. It is read through the race-free walk;
 * what it names and is not there counts as none.
 */
import path from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { z } from "zod";
import { readFileInside } from "../files/paths.ts";
import type { PathRules } from "../files/path-rules.ts";
import { findSkills, type SkillsFound } from "../skills/skills.ts";

const MANIFEST_FILE = path.join(".codex-plugin", "plugin.json");
const MAX_FILE_BYTES = 1024 * 1024;
const READ_MS = 10_000;

const text = z.string().nullish();

const Manifest = z.object({
  version: text,
  description: text,
  keywords: z.array(z.string()).nullish(),
  skills: text,
  hooks: text,
  mcpServers: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
});
export type Manifest = z.infer<typeof Manifest>;

const ServersText = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

const Hook = z.object({ command: text, timeout: z.number().nullish() });
const HooksText = z.object({
  hooks: z.record(z.string(), z.array(z.object({ matcher: text, hooks: z.array(Hook) }))),
});

export interface PluginFolder {
  readonly manifest: Manifest;
  /** Absolute. */
  readonly folder: string;
}

/** undefined: there is none. */
export async function readManifest(folder: string, rules: PathRules): Promise<Manifest | undefined> {
  return readPluginJson(path.join(folder, MANIFEST_FILE), Manifest, rules);
}

export async function pluginSkills({ folder, manifest }: PluginFolder, rules: PathRules): Promise<SkillsFound> {
  const skills = pathBelow(folder, manifest.skills ?? "skills");
  if (skills === undefined) return { skills: [], skipped: [] };
  return findSkills([skills], rules, AbortSignal.timeout(READ_MS));
}

export interface PluginHook {
  /** Below the folder. */
  readonly file: string;
  readonly event: string;
  readonly group: number;
  readonly index: number;
  readonly matcher: string | undefined;
  readonly command: string;
  readonly timeoutSec: number | undefined;
}

export async function pluginHooks(
  { folder, manifest }: PluginFolder,
  rules: PathRules,
): Promise<readonly PluginHook[]> {
  const file = path.normalize(manifest.hooks ?? "hooks/hooks.json");
  const read = await readPluginJson(pathBelow(folder, file), HooksText, rules);
  return Object.entries(read?.hooks ?? {}).flatMap(([event, groups]) =>
    groups.flatMap(({ matcher, hooks }, group) =>
      hooks.map(({ command, timeout }, index) => ({
        file,
        event,
        group,
        index,
        matcher: matcher ?? undefined,
        command: command ?? "",
        timeoutSec: timeout ?? undefined,
      })),
    ),
  );
}

/** As they are written, by name. */
export async function pluginServers(
  { folder, manifest }: PluginFolder,
  rules: PathRules,
): Promise<Readonly<Record<string, unknown>>> {
  const named = manifest.mcpServers ?? ".mcp.json";
  if (typeof named !== "string") return named;
  return (await readPluginJson(pathBelow(folder, named), ServersText, rules))?.mcpServers ?? {};
}

/** undefined: it leads out. */
export function pathBelow(root: string, relative: string): string | undefined {
  const found = path.resolve(root, relative);
  return found.startsWith(`${root === "/" ? "" : root}/`) ? found : undefined;
}

/** undefined: there is no such file. */
export async function readPluginJson<T>(
  file: string | undefined,
  shape: z.ZodType<T>,
  rules: PathRules,
): Promise<T | undefined> {
  if (file === undefined) return undefined;
  const limits = { maxBytes: MAX_FILE_BYTES + 1, signal: AbortSignal.timeout(READ_MS) };
  const read = await readFileInside(file, rules, limits).catch((error: unknown) => {
    const errno = isHeddleError(error) ? error.details["errno"] : undefined;
    if (errno === "ENOENT" || errno === "ENOTDIR") return undefined;
    throw error;
  });
  if (read === undefined) return undefined;
  if (read.bytes.length > MAX_FILE_BYTES) throw new PluginError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(read.bytes.toString("utf8"));
  } catch (cause) {
    throw new PluginError(`${file} is not JSON`, { cause });
  }
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const at = parsed.error.issues[0]?.path.join(".");
  throw new PluginError(`${file} has a wrong or missing value${at === undefined || at === "" ? "" : ` at ${at}`}`);
}

/** A message for whoever named the plugin. */
export class PluginError extends Error {}
