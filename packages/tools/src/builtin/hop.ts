/**
 * `hop`: the agent changes the envelope of its thread. Its edge, guards and ceiling are judged before the user is asked;
 * calls that come after it in the same answer are refused, because they were written for other tools.
 */
import { textTool } from "../calls/call-item.ts";
import { MAX_HOP_REASON_CHARS } from "../calls/hop-rules.ts";
import type { EnvelopeHops, Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const MAX_NAME_CHARS = 200;

const Input = z.object({
  to: z.string().check(z.minLength(1), z.maxLength(MAX_NAME_CHARS), z.describe('An envelope, or "back"')),
  reason: z.string().check(z.minLength(1), z.maxLength(MAX_HOP_REASON_CHARS)),
  carry: z.optional(z.record(z.string(), z.unknown()).check(z.describe("What the next envelope begins with"))),
  outcome: z.optional(z.record(z.string(), z.unknown()).check(z.describe("The result of the work in this envelope"))),
});
type Input = z.infer<typeof Input>;

/** A sandbox is opened and servers start; guards and the user were waited for before. */
const ENTER_MS = 120_000;

export function hopTool(hops: EnvelopeHops): Tool<Input> {
  return textTool<Input>({
    name: "hop",
    description:
      "Changes what this thread may do: leaves its envelope and enters another. Running commands end. Call it alone: calls after it in the same answer are refused.",
    input: Input,
    effects: [],
    deadlineMs: () => ENTER_MS,
    admit: (args, context) => hops.admit(args, context),
    run: (_args, context) => hops.enter(context, context.answer),
  });
}
