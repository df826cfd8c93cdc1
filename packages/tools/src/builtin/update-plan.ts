/** `update_plan`: the model's own list of steps, shown to the user. */
import type { ItemOf } from "@heddle/protocol";
import { jsonTool } from "../calls/call-item.ts";
import type { CallContext } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({
  explanation: z.optional(z.string().check(z.maxLength(4000))),
  plan: z
    .array(
      z.object({
        step: z.string().check(z.minLength(1), z.maxLength(1000)),
        status: z.enum(["pending", "in_progress", "completed"]),
      }),
    )
    .check(z.maxLength(100)),
});
type Input = z.infer<typeof Input>;

export const updatePlan = jsonTool<Input>({
  name: "update_plan",
  description: "Shows the user your plan. Send all steps each time; at most one is in_progress.",
  input: Input,
  effects: [],
  deadlineMs: () => 5000,
  describe: (args, context) => planItem(args, context, "inProgress"),
  async run(args, context) {
    return {
      isError: false,
      item: planItem(args, context, "completed"),
      output: [{ type: "text", text: "Plan updated" }],
    };
  },
});

function planItem(args: Input, context: CallContext, status: "inProgress" | "completed"): ItemOf<"plan"> {
  const steps = args.plan.map(({ step, status: state }) => ({
    text: step,
    status: state === "in_progress" ? ("inProgress" as const) : state,
  }));
  return {
    type: "plan",
    id: context.itemId,
    callId: context.callId,
    status,
    steps,
    ...(args.explanation === undefined ? {} : { explanation: args.explanation }),
  };
}
