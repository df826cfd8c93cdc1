/** What an ACP agent tells of a command: its output and its exit code, which each puts in a place of its own. */
import { z } from "zod";
import type { AcpQuirks } from "./acp-quirks.ts";

export const ShellInput = z.looseObject({
  command: z.union([z.string(), z.array(z.string())]),
  cwd: z.string().optional(),
  description: z.string().optional(),
});
const ShellOutput = z.looseObject({
  output: z.string().optional(),
  exitCode: z.number().nullish(),
  exit_code: z.number().nullish(),
  metadata: z.looseObject({ exit: z.number().nullish() }).optional(),
  contents: z.array(z.looseObject({ exitCode: z.number().nullish() })).optional(),
});

export interface ToldOfCommand {
  /** Its content, as text. */
  readonly text: string;
  readonly status?: string | null | undefined;
  readonly rawInput?: unknown;
  readonly rawOutput?: unknown;
}

export interface CommandResult {
  readonly output: string;
  readonly exitCode: number | undefined;
  /** It was stopped, whatever its status is called. */
  readonly isCancelled: boolean;
}

type Told = ToldOfCommand;
type Ends = Pick<AcpQuirks, "exitText" | "cancelText">;

export function commandResult(
  { text, status, rawInput, rawOutput }: Told,
  { exitText, cancelText }: Ends,
): CommandResult {
  const raw = ShellOutput.safeParse(rawOutput).data;
  // Some show what the command is for before they show what it prints.
  const shown = text === ShellInput.safeParse(rawInput).data?.description ? "" : text;
  const whole = raw?.output ?? shown;
  const found = exitText?.exec(whole);
  const output = found ? whole.replace(found[0], "") : whole;
  const isCancelled = cancelText?.test(whole) === true;
  const told = raw?.exitCode ?? raw?.exit_code ?? raw?.metadata?.exit ?? exitIn(raw?.contents);
  const written = found?.[1] === undefined ? undefined : Number(found[1]);
  // Whoever writes the code into the output leaves it out after a success.
  const unsaid = exitText !== undefined && status === "completed" ? 0 : undefined;
  return { output, exitCode: told ?? written ?? unsaid, isCancelled };
}

function exitIn(contents: z.infer<typeof ShellOutput>["contents"]): number | undefined {
  return contents?.find(({ exitCode }) => typeof exitCode === "number")?.exitCode ?? undefined;
}
