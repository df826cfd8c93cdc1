/** A command exits and prints as expected. One that hangs or is killed is an error, not a failure. */
import { cannot, failed, passed, type CheckContext, type Finding, type RunLeaf } from "./check.ts";
import { isBroken, killedBy, type Ended } from "./commands.ts";
import { testPattern } from "./patterns.ts";
import { shown } from "./shown.ts";

export const command: RunLeaf<"command"> = async (check, context) => {
  const end = await context.commands.run(check);
  const { output, sha256 } = end;
  if (isBroken(end)) return cannot(end.message, { output, sha256 });
  if (end.exitCode !== check.exit) {
    const killed = killedBy(end);
    if (killed !== undefined) return cannot(killed, { output, sha256 });
    return failed(`it ended with ${end.exitCode}, not ${check.exit}`, { output, sha256 });
  }
  const finding = (await judgeText(check, end, context)) ?? passed(`it ended with ${end.exitCode}`);
  return { ...finding, output, sha256 };
};

interface Wanted {
  readonly contains?: string | undefined;
  readonly matches?: string | undefined;
}

async function judgeText(wanted: Wanted, end: Ended, { signal }: CheckContext): Promise<Finding | undefined> {
  const missing: string[] = [];
  if (wanted.contains !== undefined && !end.text.includes(wanted.contains)) {
    missing.push(`contain ${shown(wanted.contains)}`);
  }
  if (wanted.matches !== undefined) {
    const isMatch = await testPattern({ source: wanted.matches, flags: "m", text: end.text }, signal);
    if (!isMatch) missing.push(`match /${wanted.matches}/`);
  }
  if (missing.length === 0) return undefined;
  const message = `its output does not ${missing.join(" and does not ")}`;
  return end.isWhole ? failed(message) : cannot(`${message}, as far as it was kept: it printed too much`);
}
