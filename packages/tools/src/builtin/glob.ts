/** `glob`: files whose path fits a pattern. */
import { callItem, callQuestion, callResult } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { globMatcher } from "../search/glob-match.ts";
import { walkFiles } from "../search/walk.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const MAX_RESULTS = 500;

const Input = z.object({
  pattern: z.string().check(z.minLength(1), z.describe('Such as "src/**/*.ts"')),
  path: z.optional(z.string().check(z.describe("Folder to search; default is the workspace"))),
});
type Input = z.infer<typeof Input>;

export const glob: Tool<Input> = {
  name: "glob",
  description: "Finds files by path pattern.",
  shape: "json",
  input: Input,
  effects: ["read"],
  isReadOnly: () => true,
  deadlineMs: () => 30_000,
  paths: (args) => [{ path: args.path ?? ".", access: "read" }],
  describe: (args, place) => callItem("glob", args, place),
  question: (args, place) => callQuestion("glob", args, place),
  async run(args, context) {
    const matches = globMatcher(args.pattern);
    const found: string[] = [];
    const walk = walkFiles(absolutePath(args.path ?? ".", context.cwd), context.envelope, context);
    let isCut = false;
    for (;;) {
      const step = await walk.next();
      if (step.done === true) {
        isCut = step.value.isTruncated;
        break;
      }
      if (!matches(step.value.relative)) continue;
      found.push(step.value.path);
      if (found.length > MAX_RESULTS) {
        found.pop();
        isCut = true;
        break;
      }
    }
    const note = isCut ? ["[more files may match; narrow the pattern or the folder]"] : [];
    const text = [...found, ...note].join("\n");
    return callResult(callItem("glob", args, context), text === "" ? "No files match." : text);
  },
};
