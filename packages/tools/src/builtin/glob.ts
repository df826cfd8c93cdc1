/** `glob`: files whose path fits a pattern. */
import { textTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { globMatcher } from "../search/glob-match.ts";
import { walkFiles } from "../search/walk.ts";
import { z } from "./schema.ts";

const MAX_RESULTS = 500;

const Input = z.object({
  pattern: z.string().check(z.minLength(1), z.describe('Such as "src/**/*.ts"')),
  path: z.optional(z.string().check(z.describe("Folder to search; default is the workspace"))),
});
type Input = z.infer<typeof Input>;

export const glob = textTool<Input>({
  name: "glob",
  description: "Finds files by path pattern.",
  input: Input,
  paths: (args) => [{ path: args.path ?? ".", access: "read" }],
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
    return text === "" ? "No files match." : text;
  },
});
