/** `grep`: lines that match a regular expression, with ripgrep in the sandbox or by a walk whose matching cannot block. */
import { basename } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { textTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { fitText } from "../calls/fit-text.ts";
import { statInside } from "../files/paths.ts";
import { globMatcher } from "../search/glob-match.ts";
import { LineMatcher } from "../search/line-matcher.ts";
import { ripgrep } from "../search/ripgrep.ts";
import { walkFiles, type WalkedFile } from "../search/walk.ts";
import { readTextFile } from "../files/text-file.ts";
import type { ToolContext } from "../calls/tool.ts";
import { z } from "./schema.ts";

const MAX_MATCHES = 500;
const MAX_LINE_CHARS = 500;
const MAX_SEARCH_MS = 20_000;
const MAX_OUTPUT_BYTES = 32 * 1024;

const Input = z.object({
  pattern: z.string().check(z.minLength(1), z.maxLength(1000), z.describe("Regular expression")),
  path: z.optional(z.string().check(z.describe("File or folder; default is the workspace"))),
  include: z.optional(z.string().check(z.describe('Only files like this, such as "*.ts"'))),
  ignore_case: z.optional(z.boolean()),
});
type Input = z.infer<typeof Input>;

export const grep = textTool<Input>({
  name: "grep",
  description: "Searches file contents for a regular expression.",
  input: Input,
  deadlineMs: () => 60_000,
  paths: (args) => [{ path: args.path ?? ".", access: "read" }],
  async run(args, context) {
    const path = absolutePath(args.path ?? ".", context.cwd);
    const query = { pattern: args.pattern, path, include: args.include, isCaseInsensitive: args.ignore_case === true };
    const lines = (await ripgrep(query, context)) ?? (await search(query, context));
    const note = lines.length > MAX_MATCHES ? [`[only the first ${MAX_MATCHES} matches are shown]`] : [];
    const text = [...lines.slice(0, MAX_MATCHES), ...note].join("\n");
    return text === "" ? "No lines match." : fitText(text, MAX_OUTPUT_BYTES);
  },
});

interface Query {
  readonly pattern: string;
  readonly path: string;
  readonly include: string | undefined;
  readonly isCaseInsensitive: boolean;
}

async function search(query: Query, context: ToolContext): Promise<string[]> {
  await using matcher = new LineMatcher(query.pattern, query);
  const isIncluded = query.include === undefined ? () => true : includeMatcher(query.include);
  const until = performance.now() + MAX_SEARCH_MS;
  const lines: string[] = [];
  for await (const file of filesOf(query.path, context)) {
    if (!isIncluded(file)) continue;
    const text = await textOrSkip(file.path, context);
    if (text === undefined) continue;
    const matches = await matcher.match(text, {
      maxMatches: MAX_MATCHES + 1 - lines.length,
      maxChars: MAX_LINE_CHARS,
      signal: context.signal,
    });
    for (const match of matches) lines.push(`${file.path}:${match.number}:${match.text}`);
    if (lines.length > MAX_MATCHES) return lines;
    if (performance.now() > until) return [...lines, "[the search took too long; the rest was not searched]"];
  }
  return lines;
}

/** A pattern without a folder matches names. */
function includeMatcher(include: string): (file: WalkedFile) => boolean {
  const matches = globMatcher(include);
  return include.includes("/") ? (file) => matches(file.relative) : (file) => matches(basename(file.relative));
}

async function* filesOf(path: string, context: ToolContext): AsyncGenerator<WalkedFile> {
  const entry = await statInside(path, context.envelope);
  if (entry?.kind === "file") yield { path, relative: basename(path) };
  else yield* walkFiles(path, context.envelope, context);
}

async function textOrSkip(path: string, context: ToolContext): Promise<string | undefined> {
  try {
    return (await readTextFile(path, context))?.text;
  } catch (error) {
    if (context.signal.aborted || !isHeddleError(error)) throw error;
    return undefined;
  }
}
