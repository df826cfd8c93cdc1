/** `list`: the entries of one folder. */
import { textTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { listInside } from "../files/paths.ts";
import { z } from "./schema.ts";

const MAX_ENTRIES = 1000;

const Input = z.object({ path: z.optional(z.string().check(z.describe("Default is the workspace"))) });
type Input = z.infer<typeof Input>;

export const list = textTool<Input>({
  name: "list",
  description: "Lists a folder; folders end in /.",
  input: Input,
  paths: (args) => [{ path: args.path ?? ".", access: "read" }],
  async run(args, context) {
    const path = absolutePath(args.path ?? ".", context.cwd);
    const { entries, isTruncated } = await listInside(path, context.envelope, { maxEntries: MAX_ENTRIES });
    const lines = entries
      .map(({ name, kind }) => (kind === "directory" ? `${name}/` : kind === "symlink" ? `${name}@` : name))
      .sort();
    if (isTruncated) lines.push(`[only the first ${MAX_ENTRIES} entries are shown]`);
    return lines.length === 0 ? "(the folder is empty)" : lines.join("\n");
  },
});
