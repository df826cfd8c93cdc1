/** `edit`: replaces an exact text in a file. It must occur once, unless every occurrence is meant. */
import { HeddleError } from "@heddle/protocol";
import { absolutePath } from "../calls/call-path.ts";
import { fileResult, fileTool } from "../files/file-change.ts";
import { writeFileInside } from "../files/paths.ts";
import { markHint, refuseNewMarks } from "../calls/redaction-mark.ts";
import { readTextFile } from "../files/text-file.ts";
import { z } from "./schema.ts";

const Input = z.object({
  file_path: z.string(),
  old_string: z.string().check(z.minLength(1), z.describe("Exact text, with enough lines around it to be unique")),
  new_string: z.string(),
  replace_all: z.optional(z.boolean()),
});
type Input = z.infer<typeof Input>;

export const edit = fileTool<Input>({
  name: "edit",
  description:
    "Replaces exact text in an existing file. Fails unless old_string occurs exactly once or replace_all is set.",
  input: Input,
  async run(args, context) {
    const path = absolutePath(args.file_path, context.cwd);
    const file = await readTextFile(path, context);
    if (file === undefined)
      throw new HeddleError("tool.failed", `${path} does not exist; use the write tool to make it`);
    const after = replaced(file.text, args, path);
    refuseNewMarks(path, [file.text], after);
    context.onWrite(Buffer.byteLength(after));
    await writeFileInside(path, after, context.envelope, { createParents: false, expectedHash: file.hash });
    return fileResult({ path, before: file.text, after }, context, `Edited ${path}`);
  },
});

function replaced(text: string, args: Input, path: string): string {
  if (args.old_string === args.new_string)
    throw new HeddleError("tool.failed", "old_string and new_string are the same");
  // A file with CRLF throughout keeps its line ends, although models type LF.
  const isCrlf = text.includes("\r\n") && !/(^|[^\r])\n/.test(text) && !args.old_string.includes("\r");
  const wanted = isCrlf ? args.old_string.replaceAll("\n", "\r\n") : args.old_string;
  const given = isCrlf ? args.new_string.replaceAll(/\r?\n/g, "\r\n") : args.new_string;
  const pieces = text.split(wanted);
  if (pieces.length === 1) throw new HeddleError("tool.failed", notFound(text, args.old_string, path));
  if (pieces.length > 2 && args.replace_all !== true) {
    throw new HeddleError(
      "tool.failed",
      `old_string occurs ${pieces.length - 1} times in ${path}; add lines around it to make it unique, or set replace_all`,
    );
  }
  return pieces.join(given);
}

function notFound(text: string, wanted: string, path: string): string {
  const marked = markHint(wanted);
  if (marked !== undefined) return `old_string was not found in ${path}; ${marked}`;
  const firstLine =
    wanted
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? "";
  const at = firstLine === "" ? -1 : text.split("\n").findIndex((line) => line.trim() === firstLine);
  const hint =
    at === -1
      ? "read the file again: it may have changed"
      : `line ${at + 1} is like its first line, so whitespace or a later line differs`;
  return `old_string was not found in ${path}; ${hint}`;
}
