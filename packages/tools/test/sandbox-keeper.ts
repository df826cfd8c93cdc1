/**
 * A Heddle that opens a sandbox, starts commands that want to survive, and waits to be killed; or runs commands there
 * and ends with them: node --conditions=heddle-source sandbox-keeper.ts <back-end> <workspace> <marker> [<command> …]
 * HEDDLE_TEST_POLICY: fields of the policy, as JSON. HEDDLE_TEST_STANDBY=no: commands enter by themselves.
 */
import { isHeddleError } from "@heddle/protocol";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { startCommand, type OwnedProcess } from "../src/commands/process.ts";
import { openSandbox } from "../src/sandbox/open.ts";
import type { SandboxPolicy } from "../src/sandbox/sandbox.ts";

const NEVER = new AbortController().signal;
const [, , backend = "auto", workspace = "/", marker = "", ...commands] = process.argv;
// Of the test's own program.
const more = JSON.parse(process.env["HEDDLE_TEST_POLICY"] ?? "{}") as Partial<SandboxPolicy>;
const surviving = `trap '' TERM HUP; (setsid env -i sleep ${marker} &) ; sleep ${marker}`;

try {
  const sandbox = await openSandbox(
    { workspace, writeRoots: [], masked: [], network: "none", ...more },
    { backend: backend === "bwrap" || backend === "namespaces" ? backend : "auto" },
  );
  const start = (command: string, output: CappedOutput): Promise<OwnedProcess> => {
    if (process.env["HEDDLE_TEST_STANDBY"] !== "no") sandbox.standBy();
    const argv = ["bash", "-c", command];
    const env = commandEnvironment(process.env);
    return startCommand({ sandbox, argv, cwd: workspace, env, stdin: "ignore", output, signal: NEVER });
  };
  if (commands.length === 0) {
    await start(surviving, new CappedOutput());
    sandbox.standBy();
    process.stdout.write("ready\n");
  }
  for (const command of commands) {
    const output = new CappedOutput();
    await (
      await start(command, output)
    ).exited;
    process.stdout.write(output.snapshot().text);
  }
  if (commands.length > 0) await sandbox.close();
} catch (error) {
  if (!isHeddleError(error)) throw error;
  process.stdout.write(error.code);
  process.stderr.write(error.message);
}
