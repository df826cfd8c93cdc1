/** `read`: lines of a text file with their numbers. */
import { HeddleError } from "@heddle/protocol";
import { textTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { readTextFile } from "../files/text-file.ts";
import { z } from "./schema.ts";

const DEFAULT_LINES = 2000;
const MAX_LINE_CHARS = 2000;
const MAX_BYTES = 32 * 1024;

const Input = z.object({
  file_path: z.string(),
  offset: z.optional(z.int().check(z.positive(), z.describe("First line, from 1"))),
  limit: z.optional(z.int().check(z.positive(), z.describe("Number of lines; default 2000"))),
});
type Input = z.infer<typeof Input>;

export const read = textTool<Input>({
  name: "read",
  description: "Reads a text file with line numbers.",
  input: Input,
  paths: (args) => [{ path: args.file_path, access: "read" }],
  async run(args, context) {
    const path = absolutePath(args.file_path, context.cwd);
    const file = await readTextFile(path, context);
    if (file === undefined) throw new HeddleError("tool.failed", `${path} does not exist`);
    return numbered(file.text, args);
  },
});

function numbered(text: string, args: Input): string {
  if (text === "") return "(the file is empty)";
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const first = args.offset ?? 1;
  if (first > lines.length) return `(the file has ${lines.length} lines; offset ${first} is past its end)`;
  const last = Math.min(lines.length, first - 1 + (args.limit ?? DEFAULT_LINES));
  let shown = "";
  let bytes = 0;
  let next = first;
  for (; next <= last; next += 1) {
    const line = `${String(next).padStart(6)}\t${shorten(lines[next - 1] ?? "")}\n`;
    bytes += Buffer.byteLength(line);
    if (bytes > MAX_BYTES) break;
    shown += line;
  }
  if (next > lines.length) return shown;
  return `${shown}[lines ${next} to ${lines.length} not shown; read on with offset ${next}]\n`;
}

function shorten(line: string): string {
  if (line.length <= MAX_LINE_CHARS) return line;
  return `${line.slice(0, MAX_LINE_CHARS).toWellFormed()} [... ${line.length - MAX_LINE_CHARS} characters left out]`;
}
