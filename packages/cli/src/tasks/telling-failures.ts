import type { Command } from "../command.ts";

/** What is refused is told as `heddle task` tells it, as text or with --json; loaded when it is needed. */
export function tellingFailures(run: Command["run"]): Command["run"] {
  return async (args, context) => {
    try {
      return await run(args, context);
    } catch (error) {
      const { printFailure } = await import("./on-task.ts");
      return await printFailure(error, args);
    }
  };
}
