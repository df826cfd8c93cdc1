/** `write`: puts a whole text into a file, new or existing. */
import { absolutePath } from "../calls/call-path.ts";
import { fileItem, fileQuestion, fileResult } from "../files/file-change.ts";
import { writeFileInside } from "../files/paths.ts";
import { refuseNewMarks } from "../calls/redaction-mark.ts";
import { readTextFile } from "../files/text-file.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({ file_path: z.string(), content: z.string() });
type Input = z.infer<typeof Input>;

export const write: Tool<Input> = {
  name: "write",
  description: "Writes a whole file, making folders as needed. An existing file is replaced; prefer edit for changes.",
  shape: "json",
  input: Input,
  effects: ["read", "write"],
  isReadOnly: () => false,
  deadlineMs: () => 30_000,
  paths: (args) => [{ path: args.file_path, access: "write" }],
  describe: (args, place) => fileItem(args.file_path, place),
  question: (args, place) => fileQuestion(args.file_path, place),
  async run(args, context) {
    const path = absolutePath(args.file_path, context.cwd);
    const before = await readTextFile(path, context);
    refuseNewMarks(path, before === undefined ? [] : [before.text], args.content);
    await writeFileInside(path, args.content, context.envelope, {
      createParents: true,
      // What was there when the diff was made must still be there when it is replaced.
      ...(before === undefined ? { mustNotExist: true } : { expectedHash: before.hash }),
    });
    const bytes = Buffer.byteLength(args.content);
    return fileResult(
      { path, before: before?.text, after: args.content },
      context,
      `${before === undefined ? "Created" : "Replaced"} ${path} (${bytes} bytes)`,
    );
  },
};
