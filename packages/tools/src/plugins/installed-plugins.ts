/**
 * Plugins that the owner has installed. Each is a copy of its folder beside the home, where no agent writes: what a
 * workspace holds later changes nothing. A copy is complete or not there.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { McpServerConfig, PLAIN, reasonOf } from "@heddle/protocol";
import { z } from "zod";
import { pluginsRoot } from "../files/heddle-folders.ts";
import { listInside, readFileInside, statInside } from "../files/paths.ts";
import type { PathRules } from "../files/path-rules.ts";
import {
  pathBelow,
  PluginError,
  pluginServers,
  readManifest,
  readPluginJson,
  type PluginFolder,
} from "./plugin-folder.ts";

const RECORD_FILE = ".heddle-plugin.json";
const MAX_ENTRIES = 5000;
const MAX_BYTES = 100 * 1024 * 1024;
const COPY_MS = 60_000;
/** The owner's own folder. */
const OWN_RULES: PathRules = { writeRoots: [], masked: [] };

/** Where it came from, for those who list it. */
const InstallRecord = z.object({
  marketplace: z.object({ name: z.string(), file: z.string(), displayName: z.string().optional() }),
  name: z.string(),
  /** The folder that was copied. */
  source: z.string(),
  category: z.string().optional(),
  installation: z.enum(["NOT_AVAILABLE", "AVAILABLE", "INSTALLED_BY_DEFAULT"]),
  authentication: z.enum(["ON_INSTALL", "ON_USE"]),
});
export type InstallRecord = z.infer<typeof InstallRecord>;

export interface InstalledPlugin extends PluginFolder {
  /** `name@marketplace`. */
  readonly id: string;
  readonly record: InstallRecord;
}

export async function installedPlugins(home: string): Promise<readonly InstalledPlugin[]> {
  const root = pluginsRoot(home);
  const found: InstalledPlugin[] = [];
  for (const marketplace of await namesIn(root)) {
    for (const name of await namesIn(path.join(root, marketplace))) {
      const folder = path.join(root, marketplace, name);
      const record = await readPluginJson(path.join(folder, RECORD_FILE), InstallRecord, OWN_RULES);
      const manifest = await readManifest(folder, OWN_RULES);
      if (record !== undefined && manifest !== undefined)
        found.push({ id: `${name}@${marketplace}`, record, manifest, folder });
    }
  }
  return found;
}

/** Its MCP servers: programs in its own folder, with nothing of the owner's environment that they name themselves. */
export async function serversOfPlugin(plugin: PluginFolder, rules = OWN_RULES): Promise<readonly McpServerConfig[]> {
  const servers = Object.entries(await pluginServers(plugin, rules));
  return servers.map(([name, given]) => serverOf(name, given, plugin.folder));
}

const ServerText = z.looseObject({
  command: z.string().optional(),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  cwd: z.string().optional(),
  url: z.string().optional(),
});

function serverOf(name: string, given: unknown, folder: string): McpServerConfig {
  const { command, args, env, cwd = ".", url, ...more } = ServerText.safeParse(given).data ?? {};
  const asked = Object.keys(more).find((key) => key.includes("env"));
  if (asked !== undefined)
    throw new PluginError(
      `the MCP server ${name} asks for ${asked}, which a plugin does not get; put it in config.toml`,
    );
  const isOwnProgram = command?.startsWith("./") === true;
  const input =
    url === undefined
      ? { name, command: isOwnProgram ? pathBelow(folder, command) : command, args, env, cwd: folderIn(folder, cwd) }
      : { name, url };
  const parsed = McpServerConfig.safeParse(input, PLAIN);
  if (parsed.success) return parsed.data;
  throw new PluginError(`the MCP server ${name} cannot be used: ${reasonOf(parsed.error)}`);
}

function folderIn(folder: string, relative: string): string {
  return pathBelow(folder, relative) ?? folder;
}

/** Replaces an earlier copy. `rules`: what may be read of the folder that is named. */
export async function installPlugin(
  home: string,
  { record, folder }: { readonly record: InstallRecord; readonly folder: string },
  rules: PathRules,
): Promise<void> {
  const place = folderOf(home, record.name, record.marketplace.name);
  if (place === undefined) throw new PluginError(`a plugin cannot be named ${record.name}@${record.marketplace.name}`);
  const root = pluginsRoot(home);
  const [incoming, replaced] = [path.join(root, `.${randomUUID()}`), path.join(root, `.${randomUUID()}`)];
  await mkdir(root, { recursive: true, mode: 0o700 });
  try {
    await copyFolder(folder, incoming, rules);
    const manifest = await readManifest(incoming, OWN_RULES);
    if (manifest === undefined) throw new PluginError(`${folder} has no manifest`);
    await serversOfPlugin({ folder: incoming, manifest });
    await writeFile(path.join(incoming, RECORD_FILE), `${JSON.stringify(record)}\n`, { mode: 0o600 });
    await mkdir(path.dirname(place), { recursive: true, mode: 0o700 });
    await rename(place, replaced).catch(ifThere);
    await rename(incoming, place);
  } finally {
    await Promise.all([incoming, replaced].map((left) => rm(left, { recursive: true, force: true })));
  }
}

/** False: there is no such id. One that is not installed is no matter. */
export async function uninstallPlugin(home: string, id: string): Promise<boolean> {
  const at = id.lastIndexOf("@");
  const place = folderOf(home, id.slice(0, Math.max(at, 0)), id.slice(at + 1));
  if (place === undefined) return false;
  await rm(place, { recursive: true, force: true });
  return true;
}

const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;

function folderOf(home: string, name: string, marketplace: string): string | undefined {
  if (!SEGMENT.test(name) || !SEGMENT.test(marketplace)) return undefined;
  return path.join(pluginsRoot(home), marketplace, name);
}

async function copyFolder(from: string, to: string, rules: PathRules): Promise<void> {
  const signal = AbortSignal.timeout(COPY_MS);
  let [entries, bytes] = [0, 0];
  async function copy(name: string): Promise<void> {
    await mkdir(path.join(to, name), { mode: 0o700 });
    const listed = await listInside(path.join(from, name), rules, { maxEntries: MAX_ENTRIES });
    entries += listed.entries.length;
    if (entries > MAX_ENTRIES || listed.isTruncated)
      throw new PluginError(`${from} has more than ${MAX_ENTRIES} files and folders`);
    for (const entry of listed.entries) {
      const below = path.join(name, entry.name);
      if (entry.kind === "directory") await copy(below);
      else if (entry.kind === "file") bytes += await copyFile(below);
      else throw new PluginError(`${path.join(from, below)} is neither a file nor a folder`);
      if (bytes > MAX_BYTES) throw new PluginError(`${from} is larger than ${MAX_BYTES} bytes`);
    }
  }
  async function copyFile(name: string): Promise<number> {
    const file = path.join(from, name);
    const isProgram = (((await statInside(file, rules))?.mode ?? 0) & 0o100) !== 0;
    const read = await readFileInside(file, rules, { maxBytes: MAX_BYTES + 1, signal });
    await writeFile(path.join(to, name), read.bytes, { mode: isProgram ? 0o700 : 0o600 });
    return read.bytes.length;
  }
  await copy("");
}

/** Copies that are being made begin with a dot. */
async function namesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(ifThere);
  return (names ?? []).filter((name) => SEGMENT.test(name)).sort();
}

function ifThere(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}
