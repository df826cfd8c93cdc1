/** `heddle task accept`: the owner says that what was put to them is the work. Shows first what the verdict rests on. */
import { EXIT, visibleLine } from "@heddle/protocol";
import { requireTasks } from "@heddle/runtime/task-store";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, say } from "../print/screen.ts";
import { styleFor } from "../print/style.ts";
import { paintState, standing } from "./outcome.ts";
import { reviewLines } from "./work-lines.ts";

export async function acceptTask(selector: string, args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const isJson = args.has("json");
  const out = openScreen(process.stdout, { isRaw: isJson });
  const style = styleFor("auto", out.isTerminal, env);
  await using store = await requireTasks(env, selector, say);
  const { id, lastCheck } = await store.tasks.find(selector);
  const accepted = await store.tasks.accept(id, args.value("reason"));
  if (isJson) {
    await out.write(toLine(accepted));
    return EXIT.ok;
  }
  const isJudgedAgain = accepted.deliver !== undefined;
  const lines = [
    ...reviewLines(lastCheck?.review, style),
    `${id}  ${visibleLine(accepted.spec.name)}  ${paintState(accepted.state, style)}  ${visibleLine(standing(accepted))}`.trimEnd(),
  ];
  await out.write(`${lines.join("\n")}\n`);
  if (isJudgedAgain) say("accepted; heddle watch, or a running heddle serve, judges it again with these files");
  else say("accepted without verification: the task ends as claimed, because no check proves it");
  return EXIT.ok;
}
