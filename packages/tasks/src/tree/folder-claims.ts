/** Claims on folders that something is put into or copied from: `<home>/putting/<hash of the folder>`, see put-back.ts. */
import { readdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { claimStore } from "@heddle/agent/store-claim";
import { isHeddleError } from "@heddle/protocol";
import { realPathOf } from "@heddle/tools/held-folder";
import { sha256 } from "./manifest.ts";
import { removeTree } from "./remove-tree.ts";

export function folderClaim(home: string, folder: string): string {
  return join(claimsRoot(home), sha256(realPathOf(folder)).slice(0, 32));
}

function claimsRoot(home: string): string {
  return join(home, "putting");
}

/** Moved there first, so that nobody finds half of one. */
const GONE = ".gone";

/** Removes those that nobody has held for so long. */
export async function collectFolderClaims(
  home: string,
  { isOld, signal }: { readonly isOld: (changedAtMs: number) => boolean; readonly signal: AbortSignal },
): Promise<void> {
  const names: readonly string[] = await readdir(claimsRoot(home)).catch(() => []);
  for (const name of names) {
    signal.throwIfAborted();
    const own = join(claimsRoot(home), name);
    if (name.endsWith(GONE)) await removeTree(own, signal);
    else await collect(own, { isOld, signal });
  }
}

async function collect(own: string, { isOld, signal }: Parameters<typeof collectFolderClaims>[1]): Promise<void> {
  const used = await stat(join(own, "owner")).catch(() => undefined);
  if (used !== undefined && !isOld(used.mtimeMs)) return;
  try {
    await using _claim = await claimStore(own, "heddle task collect");
    // Whoever is about to claim it listens already, and may have looked before this claim was there.
    const listening = (await readdir(join(own, "owner"))).filter((name) => name.endsWith(".sock"));
    if (listening.length > 1) return;
    await rename(own, `${own}${GONE}`);
    await removeTree(`${own}${GONE}`, signal);
  } catch (error) {
    if (!isHeddleError(error) || !error.code.startsWith("store.")) throw error;
  }
}
