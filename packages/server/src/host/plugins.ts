/**
 * Plugins of this machine that can be installed: folders that a marketplace file (`.agents/plugins/marketplace.json` of a
 * repository or of the user) lists. They are read; nothing of them is run.
 */
import path from "node:path";
import type { PathRules } from "@heddle/tools/files";
import { pathBelow, readManifest, readPluginJson, type PluginFolder } from "@heddle/tools/plugins";
import { z } from "zod";

export const MARKETPLACE_FILE = path.join(".agents", "plugins", "marketplace.json");
const MAX_PLUGINS = 200;

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

type Entry = z.infer<typeof MarketplaceText>["plugins"][number];

export interface Plugin extends PluginFolder {
  readonly entry: Entry;
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
  const read = await readPluginJson(file, MarketplaceText, rules);
  if (read === undefined) return undefined;
  const root = path.resolve(path.dirname(file), "..", "..");
  const plugins: Plugin[] = [];
  const problems: string[] = [];
  if (read.plugins.length > MAX_PLUGINS) problems.push(`only the first ${MAX_PLUGINS} plugins are read`);
  for (const entry of read.plugins.slice(0, MAX_PLUGINS)) {
    const folder = folderOf(entry, root);
    const manifest = folder === undefined ? undefined : await readManifest(folder, rules).catch(() => undefined);
    if (folder === undefined || manifest === undefined)
      problems.push(`plugin \`${entry.name}\` is not a folder with a manifest below ${root}`);
    else plugins.push({ entry, manifest, folder });
  }
  return { name: read.name, displayName: read.interface?.displayName ?? undefined, file, plugins, problems };
}

/** Plugins elsewhere are not fetched, and none leads out of its marketplace. */
function folderOf({ source }: Entry, root: string): string | undefined {
  const relative = typeof source === "string" ? source : source.source === "local" ? source.path : undefined;
  if (relative === undefined || relative === null) return undefined;
  return pathBelow(root, relative);
}
