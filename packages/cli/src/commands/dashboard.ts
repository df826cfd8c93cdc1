/** `heddle dashboard`: the page of a running server, with a code that logs one browser in. */
import { spawn } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, visibleText } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { loginAddress } from "@heddle/runtime/doors";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";

export const dashboardCommand: Command = {
  usage: "dashboard [--no-open] [--json]",
  about:
    "Prints the address of the dashboard of the server that runs on this home, and opens it in the browser. The code in it\n" +
    "logs one browser in as the owner, once and within a minute; the login ends when it was not used for 12 hours. A token\n" +
    "of heddle token works in the page too.",
  options: [
    { name: "no-open", help: "Only print the address" },
    { name: "json", help: "One JSON object: url, page, expiresAt" },
  ],
  examples: ["heddle dashboard", "heddle dashboard --no-open"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`dashboard takes no arguments, only options; what is "${extra}"?`);
  const home = heddleHome(env);
  const address = await loginAddress(home);
  const out = openOutput(process.stdout);
  await out.write(args.has("json") ? toLine(address) : `${visibleText(address.url)}\n`);
  if (!args.has("json") && !args.has("no-open") && process.stdout.isTTY) await openBrowser(home, address.url, env);
  return EXIT.ok;
}

/**
 * By a file that only the owner can read: the arguments of a program can be seen by every user of the machine. Where no
 * browser can be opened the printed address is enough.
 */
async function openBrowser(home: string, url: string, env: NodeJS.ProcessEnv): Promise<void> {
  const hasScreen = process.platform === "darwin" || (env["DISPLAY"] ?? env["WAYLAND_DISPLAY"] ?? "") !== "";
  if (!hasScreen) return;
  const file = path.join(home, "dashboard.html");
  const target = url.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const page = `<!doctype html><meta http-equiv="refresh" content="0; url=${target}"><a href="${target}">Dashboard</a>\n`;
  // Made anew, so that it is nobody else's file and no link, and has this mode from its beginning.
  await rm(file, { force: true });
  await writeFile(file, page, { mode: 0o600, flag: "wx" });
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(opener, [file], { stdio: "ignore", detached: true, env });
  child.on("error", () => undefined);
  child.unref();
}
