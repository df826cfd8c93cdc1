/** `heddle doctor`: what this machine lacks for Heddle, each with the command that fixes it. It changes nothing. */
import { EXIT, visibleText } from "@heddle/protocol";
import { findings, type Finding } from "@heddle/runtime/doctor";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";

export const doctorCommand: Command = {
  usage: "doctor",
  about:
    "Looks at Node, the sandbox, Heddle's home, the configuration and the providers, and says how to fix what is missing.",
  options: [
    { name: "json", help: "One JSON object per finding" },
    { name: "online", help: "Also ask each provider that has a key, and those on this machine, whether it answers" },
  ],
  examples: ["heddle doctor", "heddle doctor --online", "heddle doctor --json"],
  run,
};

async function run(args: ParsedArgs, { env, cwd }: CommandContext): Promise<number> {
  if (args.positionals.length > 0) throw usage("heddle doctor takes no arguments, only options");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const found = await findings({ env, cwd, isOnline: args.has("online") });
  const style = styleFor("auto", out.isTerminal, env);
  for (const finding of found) await out.write(args.has("json") ? toLine(finding) : `${line(finding, style)}\n`);
  return found.some(({ state }) => state === "problem") ? EXIT.turnFailed : EXIT.ok;
}

function line({ name, state, detail, fix }: Finding, style: Style): string {
  const mark = { ok: style.bold("ok     "), absent: style.dim("absent "), problem: style.red("problem") }[state];
  const help = fix === undefined ? "" : `\n          ${style.bold("fix:")} ${visibleText(fix)}`;
  return `${mark}   ${name.padEnd(22)} ${visibleText(detail)}${help}`;
}
