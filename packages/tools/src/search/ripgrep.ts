/** Runs ripgrep inside the sandbox when the host has it: quicker on large trees, and it knows what is ignored. */
import { delimiter, isAbsolute } from "node:path";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findProgram } from "../sandbox/host-tools.ts";
import type { ToolContext } from "../calls/tool.ts";

const MAX_SEARCH_MS = 20_000;
const MAX_LINE_CHARS = 500;
/** More lines than are ever shown. */
const OUTPUT_BYTES = 256 * 1024;

export interface RipgrepQuery {
  readonly pattern: string;
  /** Absolute file or folder. */
  readonly path: string;
  readonly include: string | undefined;
  readonly isCaseInsensitive: boolean;
}

/** `path:line:text` lines; undefined when there is no ripgrep or it did not understand the pattern. */
export async function ripgrep(query: RipgrepQuery, context: ToolContext): Promise<string[] | undefined> {
  const file = findProgram("rg", (context.state.environment["PATH"] ?? "").split(delimiter).filter(isAbsolute));
  if (file === undefined) return undefined;
  const output = new CappedOutput({ headBytes: OUTPUT_BYTES, tailBytes: 0 });
  const argv = [
    file,
    "--no-config",
    "--line-number",
    "--no-heading",
    "--with-filename",
    "--color=never",
    "--sort=path",
    `--max-columns=${MAX_LINE_CHARS}`,
    "--max-columns-preview",
    ...(query.isCaseInsensitive ? ["--ignore-case"] : []),
    ...(query.include === undefined ? [] : [`--glob=${query.include}`]),
    `--regexp=${query.pattern}`,
    "--",
    query.path,
  ];
  await using search = await startCommand({
    sandbox: context.sandbox,
    argv,
    cwd: context.cwd,
    env: context.state.environment,
    stdin: "ignore",
    output,
    signal: context.signal,
    timeoutMs: MAX_SEARCH_MS,
  });
  const { exitCode } = await search.exited;
  await output.close();
  context.signal.throwIfAborted();
  // 0: found, 1: nothing found; anything else (a pattern of another dialect, a time-out) is left to the other way.
  if (exitCode !== 0 && exitCode !== 1) return undefined;
  return output
    .take()
    .text.split("\n")
    .filter((line) => line !== "");
}
