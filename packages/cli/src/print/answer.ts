/** Where a command prints its answer: JSON lines for programs with `--json`, text for people without. */
import type { ParsedArgs } from "../args.ts";
import { toLine } from "./jsonl.ts";
import type { Output } from "./output.ts";
import { openScreen } from "./screen.ts";
import { styleFor, type Style } from "./style.ts";

export interface Answer {
  readonly out: Output;
  readonly isJson: boolean;
  readonly style: Style;
  /** One of the two; the text brings its line ends along. */
  readonly print: (value: unknown, text: string) => Promise<void>;
}

export function openAnswer(args: ParsedArgs, env: NodeJS.ProcessEnv): Answer {
  const isJson = args.has("json");
  const out = openScreen(process.stdout, { isRaw: isJson });
  const style = styleFor("auto", out.isTerminal, env);
  return { out, isJson, style, print: (value, text) => out.write(isJson ? toLine(value) : text) };
}
