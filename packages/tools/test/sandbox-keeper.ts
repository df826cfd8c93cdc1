/**
 * A Heddle that opens a sandbox, starts commands that want to survive, and waits to be killed:
 * node --conditions=heddle-source sandbox-keeper.ts <back-end> <workspace> <marker>
 */
import { isHeddleError } from "@heddle/protocol";
import { commandEnvironment } from "../src/environment.ts";
import { CappedOutput } from "../src/output.ts";
import { startCommand } from "../src/process.ts";
import { openSandbox } from "../src/sandbox/open.ts";

const [, , backend = "auto", workspace = "/", marker = ""] = process.argv;

try {
  const sandbox = await openSandbox(
    { workspace, writeRoots: [], masked: [], network: "none" },
    { backend: backend === "bwrap" || backend === "namespaces" ? backend : "auto" },
  );
  await startCommand({
    sandbox,
    argv: ["bash", "-c", `trap '' TERM HUP; (setsid env -i sleep ${marker} &) ; sleep ${marker}`],
    cwd: workspace,
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output: new CappedOutput(),
    signal: new AbortController().signal,
  });
  process.stdout.write("ready\n");
} catch (error) {
  if (!isHeddleError(error)) throw error;
  process.stdout.write(error.code);
  process.stderr.write(error.message);
}
