/** The file of `--result-json`. */
import path from "node:path";
import type { HeldFile } from "@heddle/tools/held-file";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";

/** As far as the command line says: where agents may write. */
export function rootsOf(args: ParsedArgs, cwd: string): readonly string[] {
  return [args.value("cd") ?? ".", ...args.values("add-dir")].map((folder) => path.resolve(cwd, folder));
}

export async function holdResultFile(
  args: ParsedArgs,
  context: Pick<CommandContext, "cwd" | "env">,
  roots: readonly string[],
): Promise<HeldFile | undefined> {
  const file = args.value("result-json");
  if (file === undefined) return undefined;
  const { holdOutputFile } = await import("../output-file.ts");
  return await holdOutputFile(["--result-json", file], context, { roots, mode: 0o600 });
}
