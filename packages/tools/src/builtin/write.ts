/** `write`: writes a whole file, new or existing. */
import { absolutePath } from "../calls/call-path.ts";
import { fileResult, fileTool } from "../files/file-change.ts";
import { writeFileInside } from "../files/paths.ts";
import { refuseNewMarks } from "../calls/redaction-mark.ts";
import { readTextFile } from "../files/text-file.ts";
import { z } from "./schema.ts";

const Input = z.object({ file_path: z.string(), content: z.string() });
type Input = z.infer<typeof Input>;

export const write = fileTool<Input>({
  name: "write",
  description: "Writes a whole file, making folders as needed. An existing file is replaced; prefer edit for changes.",
  input: Input,
  async run(args, context) {
    const path = absolutePath(args.file_path, context.cwd);
    const before = await readTextFile(path, context);
    refuseNewMarks(path, before === undefined ? [] : [before.text], args.content);
    context.onWrite(Buffer.byteLength(args.content));
    await writeFileInside(path, args.content, context.envelope, {
      createParents: true,
      // The content the diff was made from must not have changed.
      ...(before === undefined ? { mustNotExist: true } : { expectedHash: before.hash }),
    });
    const bytes = Buffer.byteLength(args.content);
    return fileResult(
      { path, before: before?.text, after: args.content },
      context,
      `${before === undefined ? "Created" : "Replaced"} ${path} (${bytes} bytes)`,
    );
  },
});
