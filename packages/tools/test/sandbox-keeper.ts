/**
 * A Heddle that opens a sandbox, starts commands that want to survive, and waits to be killed; or runs one command there and
 * ends with it: node --conditions=heddle-source sandbox-keeper.ts <back-end> <workspace> <marker> [<command>]
 */
import { isHeddleError } from "@heddle/protocol";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { startCommand } from "../src/commands/process.ts";
import { openSandbox } from "../src/sandbox/open.ts";

const [, , backend = "auto", workspace = "/", marker = "", once] = process.argv;
const surviving = `trap '' TERM HUP; (setsid env -i sleep ${marker} &) ; sleep ${marker}`;

try {
  const sandbox = await openSandbox(
    { workspace, writeRoots: [], masked: [], network: "none" },
    { backend: backend === "bwrap" || backend === "namespaces" ? backend : "auto" },
  );
  sandbox.standBy();
  const output = new CappedOutput();
  const command = await startCommand({
    sandbox,
    argv: ["bash", "-c", once ?? surviving],
    cwd: workspace,
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output,
    signal: new AbortController().signal,
  });
  if (once === undefined) {
    sandbox.standBy();
    process.stdout.write("ready\n");
  } else {
    await command.exited;
    await sandbox.close();
    process.stdout.write(output.snapshot().text);
  }
} catch (error) {
  if (!isHeddleError(error)) throw error;
  process.stdout.write(error.code);
  process.stderr.write(error.message);
}
