/** `update_goal`: the agent says that the goal of its thread is reached, or that it cannot go on without the user. */
import { callItem, callQuestion, callResult } from "../calls/call-item.ts";
import type { GoalEnd } from "../calls/goal-end.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({ status: z.enum(["complete", "blocked"]) });
type Input = z.infer<typeof Input>;

const NAME = "update_goal";

export function goalTool(end: GoalEnd): Tool<Input> {
  return {
    name: NAME,
    description:
      "Ends the goal of this thread: complete when it is reached and checked, blocked when only the user can help.",
    shape: "json",
    input: Input,
    effects: [],
    isReadOnly: () => true,
    deadlineMs: () => 5000,
    paths: () => [],
    describe: (args, place) => callItem(NAME, args, place),
    question: (args, place) => callQuestion(NAME, args, place),
    async run(args, context) {
      await end(args.status);
      return callResult(callItem(NAME, args, context), `The goal is ${args.status} now.`);
    },
  };
}
