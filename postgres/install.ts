/** Postgres itself, as a package of this folder; the root of the tree stays without it. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

export function installPostgres(): void {
  const folder = import.meta.dirname;
  if (existsSync(path.join(folder, "node_modules"))) return;
  const installed = spawnSync("npm", ["ci", "--ignore-scripts", "--no-progress"], { cwd: folder, stdio: "inherit" });
  if (installed.status !== 0) throw new Error("Postgres could not be installed; see above");
}
