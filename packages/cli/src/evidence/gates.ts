/** `heddle evidence gate` and `gates`: a named sequence of guards, run on a thread, and which there are here. */
import { EXIT, exitCodeOf, OWNER, visibleLine } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { envelopeFolders, gatesBeside, readGates } from "@heddle/tools/envelopes";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { change } from "../commands/threads.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";

interface Asked {
  readonly args: ParsedArgs;
  readonly context: CommandContext;
  readonly out: Output;
}

/** Exits as a hop does whose guard is not met, where the gate is refused. */
export async function runGate(
  { thread, name }: { readonly thread: string; readonly name: string },
  { args, context, out }: Asked,
): Promise<number> {
  let isPassed = false;
  await change(thread, context, async (heddle, { id: threadId }) => {
    const run = await heddle.as(OWNER).runGate({ threadId, name });
    ({ isPassed } = run);
    if (args.has("json")) return out.write(toLine({ threadId, ...run }));
    const lines = run.proof.path.map(({ kind, isMet, found, entries = [] }) => {
      const seen = entries.map((entry) => `    ${entry}\n`).join("");
      return `  ${isMet ? "met    " : "not met"}  ${kind}: ${visibleLine(found)}\n${seen}`;
    });
    const verdict = `${visibleLine(name)} ${isPassed ? "passed" : "is refused"}, on record as ${run.entryId}\n`;
    return out.write(`${lines.join("")}${verdict}`);
  });
  return isPassed ? EXIT.ok : exitCodeOf("hop.guard-failed");
}

export async function listGates({ args, context, out }: Asked): Promise<number> {
  const { known } = readGates(gatesBeside(envelopeFolders(heddleHome(context.env), context.cwd)));
  for (const { gate, description, source, file } of known.values()) {
    const kinds = gate.guards.map(({ kind }) => kind).join(", ");
    const line = `${gate.name.padEnd(20)}  ${source.padEnd(8)}  ${visibleLine(description || kinds)}\n`;
    await out.write(args.has("json") ? toLine({ ...gate, description, source, file }) : line);
  }
  if (known.size === 0 && !args.has("json"))
    await out.write(
      "there are no gates here; one is a file gates/NAME.yaml in HEDDLE_HOME, or .heddle/gates/NAME.yaml in a project\n",
    );
  return EXIT.ok;
}
