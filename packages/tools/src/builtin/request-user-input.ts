/**
 * `request_user_input`: the agent asks the user. Dispatch asks before the call begins, as with every question: it is
 * stored, reaches every door, and outlives a restart. The call itself only gives the model the answer.
 */
import { textTool } from "../calls/call-item.ts";
import { z } from "./schema.ts";

const text = (most: number) => z.string().check(z.minLength(1), z.maxLength(most));
const Option = z.object({ label: text(100), description: text(500) });
const Question = z.object({
  id: text(64).check(z.describe("snake_case, unlike the others")),
  header: text(40).check(z.describe("A short label")),
  question: text(1000),
  options: z
    .array(Option)
    .check(z.minLength(2), z.maxLength(4), z.describe("2 or 3, the best first; the user may write another answer")),
});
const Input = z.object({ questions: z.array(Question).check(z.minLength(1), z.maxLength(3)) });
type Input = z.infer<typeof Input>;

export const requestUserInput = textTool<Input>({
  name: "request_user_input",
  description: "Asks the user one to three short questions and waits for the answers.",
  input: Input,
  effects: [],
  isQuestion: true,
  deadlineMs: () => 5000,
  question: ({ questions }, { callId, itemId }) => ({ kind: "userInput", callId, itemId, questions: [...questions] }),
  async run({ questions }, { answer }) {
    // A question without an answer is listed too.
    const answers = Object.fromEntries(questions.map(({ id }) => [id, { answers: answer?.answers?.[id] ?? [] }]));
    return JSON.stringify({ answers });
  },
});
