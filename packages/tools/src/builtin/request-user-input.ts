/**
 * `request_user_input`: the agent asks the user. The question is put by dispatch, before the call begins, as every question
 * is: it is stored, reaches every door, and outlives a restart. The call itself only tells the model what was answered.
 */
import type { ApprovalQuestion, UserAnswers } from "@heddle/protocol";
import { callItem, callResult } from "../calls/call-item.ts";
import type { CallPlace, Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const words = (most: number) => z.string().check(z.minLength(1), z.maxLength(most));
const Option = z.object({ label: words(100), description: words(500) });
const Question = z.object({
  id: words(64).check(z.describe("snake_case, unlike the others")),
  header: words(40).check(z.describe("A short label")),
  question: words(1000),
  options: z
    .array(Option)
    .check(z.minLength(2), z.maxLength(4), z.describe("2 or 3, the best first; the user may write another answer")),
});
const Input = z.object({ questions: z.array(Question).check(z.minLength(1), z.maxLength(3)) });
type Input = z.infer<typeof Input>;

const NAME = "request_user_input";

export const requestUserInput: Tool<Input> = {
  name: NAME,
  description: "Asks the user one to three short questions and waits for the answers.",
  shape: "json",
  input: Input,
  effects: [],
  isQuestion: true,
  isReadOnly: () => true,
  deadlineMs: () => 5000,
  paths: () => [],
  describe: (args, place) => callItem(NAME, args, place),
  question,
  async run(args, context) {
    const answers = told(args, context.answer?.answers ?? {});
    return callResult(callItem(NAME, args, context), JSON.stringify({ answers }));
  },
};

function question({ questions }: Input, { callId, itemId }: CallPlace): ApprovalQuestion {
  return { kind: "userInput", callId, itemId, questions: [...questions] };
}

/** Every question is there, also one that was left open. */
function told({ questions }: Input, answers: UserAnswers): Readonly<Record<string, { readonly answers: string[] }>> {
  return Object.fromEntries(questions.map(({ id }) => [id, { answers: answers[id] ?? [] }]));
}
