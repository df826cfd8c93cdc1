/** `list`: the entries of one folder. */
import { callItem, callQuestion, callResult } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { listInside } from "../files/paths.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const MAX_ENTRIES = 1000;

const Input = z.object({ path: z.optional(z.string().check(z.describe("Default is the workspace"))) });
type Input = z.infer<typeof Input>;

export const list: Tool<Input> = {
  name: "list",
  description: "Lists a folder; folders end in /.",
  shape: "json",
  input: Input,
  effects: ["read"],
  isReadOnly: () => true,
  deadlineMs: () => 30_000,
  paths: (args) => [{ path: args.path ?? ".", access: "read" }],
  describe: (args, place) => callItem("list", args, place),
  question: (args, place) => callQuestion("list", args, place),
  async run(args, context) {
    const path = absolutePath(args.path ?? ".", context.cwd);
    const { entries, isTruncated } = await listInside(path, context.envelope, { maxEntries: MAX_ENTRIES });
    const lines = entries
      .map(({ name, kind }) => (kind === "directory" ? `${name}/` : kind === "symlink" ? `${name}@` : name))
      .sort();
    if (isTruncated) lines.push(`[only the first ${MAX_ENTRIES} entries are shown]`);
    return callResult(callItem("list", args, context), lines.length === 0 ? "(the folder is empty)" : lines.join("\n"));
  },
};
