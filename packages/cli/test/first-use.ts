/** README, "Use it", followed as a new user would: the packed package, installed, in a fresh project. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { FIX, makeFailingProject } from "./failing-project.ts";
import { MOCK_KEY, openMockWorld } from "./mock-model.ts";
import { REPOSITORY, type PackedPackage } from "./packed-package.ts";

const exec = promisify(execFile);

/** What each command of the section printed. */
export async function useAsReadmeSays(packed: PackedPackage): Promise<ReadonlyMap<string, string>> {
  await using mock = await openMockWorld({
    respond: ({ answers, body }) => {
      if (!JSON.stringify(body).includes("fix the failing test")) return { text: "sum of 2 and 3" };
      return answers === 0 ? { calls: [{ tool: "exec_command", args: { cmd: FIX } }] } : { text: "It is done." };
    },
  });
  const { world } = mock;
  await makeFailingProject(world);
  const prefix = path.join(world.root, "installed");
  const env = {
    ...world.env,
    ...MOCK_KEY,
    PATH: `${prefix}/bin:${path.dirname(process.execPath)}:${world.env["PATH"]}`,
  };
  const install = ["install", "--global", "--prefix", prefix, "--offline", "--no-audit", "--no-fund"];
  await exec("npm", [...install, packed.tarball], { env });

  const readme = await readFile(path.join(REPOSITORY, "README.md"), "utf8");
  const [, section = ""] = /^## Use it\n([^]*?)^## /m.exec(readme) ?? [];
  const [, lines = ""] = /has a failing test:\n\n```sh\n([^]*?)^```/m.exec(section) ?? [];
  const printed = new Map<string, string>();
  for (const line of lines.trimEnd().split("\n")) {
    const command = line.replace(/ +# .*$/, "");
    const ran = await exec("sh", ["-ec", command], { cwd: world.workspace, env });
    printed.set(command, ran.stdout);
  }
  return printed;
}
