/** `update_goal`: the agent reports that the goal of its thread is reached, or that only the user can help. */
import { textTool } from "../calls/call-item.ts";
import type { GoalEnd, Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({ status: z.enum(["complete", "blocked"]) });
type Input = z.infer<typeof Input>;

export function goalTool(end: GoalEnd): Tool<Input> {
  return textTool<Input>({
    name: "update_goal",
    description:
      "Ends the goal of this thread: complete when it is reached and checked, blocked when only the user can help.",
    input: Input,
    effects: [],
    deadlineMs: () => 5000,
    async run({ status }) {
      await end(status);
      return `The goal is ${status} now.`;
    },
  });
}
