/** A failure of a command about tasks: several lines keep their lines, and a reader of JSON gets it as JSON. */
import { exitCodeOf, toHeddleError } from "@heddle/protocol";
import { SpecError } from "@heddle/tasks";
import type { ParsedArgs } from "../args.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { say } from "../print/screen.ts";

export async function tellFailure(error: unknown, args: ParsedArgs): Promise<number> {
  const { code, message } = toHeddleError(error);
  if (code === "internal") throw error;
  if (args.has("json")) {
    const problems = error instanceof SpecError ? { problems: error.problems } : {};
    await openOutput(process.stdout).write(toLine({ type: "error", code, message, ...problems }));
  }
  for (const line of message.split("\n")) say(line);
  return exitCodeOf(code);
}
