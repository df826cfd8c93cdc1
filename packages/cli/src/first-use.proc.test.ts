/** README, "Use it", followed as a new user would: the packed package, installed, in a fresh project. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { FIX, makeFailingProject } from "../test/failing-project.ts";
import { MOCK_KEY, openMockWorld } from "../test/mock-model.ts";
import { packAndInstall, REPOSITORY } from "../test/packed-package.ts";

const exec = promisify(execFile);

test(
  "14: README's first use, typed in a fresh project, leads from the packed package to a verified task",
  { timeout: 240_000 },
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers, body }) => {
        if (!JSON.stringify(body).includes("fix the failing test")) return { text: "sum of 2 and 3" };
        return answers === 0 ? { calls: [{ tool: "exec_command", args: { cmd: FIX } }] } : { text: "It is done." };
      },
    });
    const { world } = mock;
    await makeFailingProject(world);
    await using packed = await packAndInstall();
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
    expect([...printed.keys()]).toHaveLength(8);
    expect(printed.get("heddle threads list")).toContain("which test fails");
    expect(printed.get("heddle task lint heddle-task.yaml --run")).toContain(
      "FAILED tests npm test: 0 passed, 1 failed",
    );
    expect(printed.get("heddle task run heddle-task.yaml")).toContain("VERIFIED: every check passed");
    expect(printed.get('heddle task diff "fix the failing test"')).toContain("+exports.sum = (a, b) => a + b;");
  },
);
