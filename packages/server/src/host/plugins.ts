/**
 * Plugins of this machine: folders that a marketplace file (`.agents/plugins/marketplace.json` of a repository or of the
 * user) lists, with a manifest that names skills, hooks and MCP servers. They are read; nothing of them is run or installed.
 */
import path from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { findSkills, type Skill } from "@heddle/tools";
import { readFileInside, type PathRules } from "@heddle/tools/files";
import { z } from "zod";

export const MARKETPLACE_FILE = path.join(".agents", "plugins", "marketplace.json");
const MANIFEST_FILE = path.join(".codex-plugin", "plugin.json");
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PLUGINS = 200;
const READ_MS = 10_000;

const text = z.string().nullish();

const MarketplaceText = z.object({
  name: z.string().min(1).max(200),
  interface: z.object({ displayName: text }).nullish(),
  plugins: z.array(
    z.object({
      name: z.string().min(1).max(200),
      source: z.union([z.string(), z.object({ source: z.string(), path: text })]),
      policy: z
        .object({
          installation: z.enum(["NOT_AVAILABLE", "AVAILABLE", "INSTALLED_BY_DEFAULT"]).nullish(),
          authentication: z.enum(["ON_INSTALL", "ON_USE"]).nullish(),
        })
        .nullish(),
      category: text,
    }),
  ),
});

const Manifest = z.object({
  version: text,
  description: text,
  keywords: z.array(z.string()).nullish(),
  skills: text,
  hooks: text,
  mcpServers: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
});

const ServersText = z.object({ mcpServers: z.record(z.string(), z.unknown()) });
const HooksText = z.object({
  hooks: z.record(z.string(), z.array(z.object({ hooks: z.array(z.unknown()) }))),
});

type Entry = z.infer<typeof MarketplaceText>["plugins"][number];

export interface Plugin {
  readonly entry: Entry;
  readonly manifest: z.infer<typeof Manifest>;
  /** Absolute. */
  readonly folder: string;
}

export interface Marketplace {
  readonly name: string;
  readonly displayName: string | undefined;
  readonly file: string;
  readonly plugins: readonly Plugin[];
  readonly problems: readonly string[];
}

/** undefined: there is no such file. Throws when it cannot be read as one. */
export async function readMarketplace(file: string, rules: PathRules): Promise<Marketplace | undefined> {
  const read = await readJson(file, MarketplaceText, rules);
  if (read === undefined) return undefined;
  const root = path.resolve(path.dirname(file), "..", "..");
  const plugins: Plugin[] = [];
  const problems: string[] = [];
  if (read.plugins.length > MAX_PLUGINS) problems.push(`only the first ${MAX_PLUGINS} plugins are read`);
  for (const entry of read.plugins.slice(0, MAX_PLUGINS)) {
    const folder = folderOf(entry, root);
    const manifest = await readJson(folder && path.join(folder, MANIFEST_FILE), Manifest, rules).catch(() => undefined);
    if (folder === undefined || manifest === undefined)
      problems.push(`plugin \`${entry.name}\` is no folder with a manifest below ${root}`);
    else plugins.push({ entry, manifest, folder });
  }
  return { name: read.name, displayName: read.interface?.displayName ?? undefined, file, plugins, problems };
}

/** Plugins elsewhere are not fetched, and none leads out of its marketplace. */
function folderOf({ source }: Entry, root: string): string | undefined {
  const relative = typeof source === "string" ? source : source.source === "local" ? source.path : undefined;
  if (relative === undefined || relative === null) return undefined;
  return inside(root, relative);
}

function inside(root: string, relative: string): string | undefined {
  const found = path.resolve(root, relative);
  return found.startsWith(`${root === "/" ? "" : root}/`) ? found : undefined;
}

export interface PluginParts {
  readonly skills: readonly Skill[];
  /** The file, and for each event how many hooks each of its groups has. */
  readonly hooks: {
    readonly file: string;
    readonly events: readonly (readonly [event: string, groups: readonly number[]])[];
  };
  readonly mcpServers: readonly string[];
}

/** What a part names and is not there counts as none. */
export async function readParts({ folder, manifest }: Plugin, rules: PathRules): Promise<PluginParts> {
  const skills = inside(folder, manifest.skills ?? "skills");
  const hooksName = path.normalize(manifest.hooks ?? "hooks/hooks.json");
  const hooksFile = inside(folder, hooksName);
  const hooks = await readJson(hooksFile, HooksText, rules);
  const found = skills === undefined ? [] : (await findSkills([skills], rules, AbortSignal.timeout(READ_MS))).skills;
  return {
    skills: found,
    hooks: {
      file: hooksName,
      events: Object.entries(hooks?.hooks ?? {}).map(([event, groups]) => [
        event,
        groups.map((group) => group.hooks.length),
      ]),
    },
    mcpServers: await serversOf(folder, manifest.mcpServers ?? ".mcp.json", rules),
  };
}

async function serversOf(folder: string, named: string | object, rules: PathRules): Promise<readonly string[]> {
  if (typeof named !== "string") return Object.keys(named);
  const read = await readJson(inside(folder, named), ServersText, rules);
  return Object.keys(read?.mcpServers ?? {});
}

/** undefined: there is no such file. */
async function readJson<T>(file: string | undefined, shape: z.ZodType<T>, rules: PathRules): Promise<T | undefined> {
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

/** For the list of what could not be loaded. */
export class PluginError extends Error {}
