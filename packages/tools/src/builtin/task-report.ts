/** `task_report`: what the agent says of the task it works on. It changes nothing; whoever follows the turn reads it. */
import { callItem, callQuestion, callResult } from "../calls/call-item.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({
  status: z.enum(["done", "blocked", "progress"]),
  summary: z.string().check(z.maxLength(4000)),
  steps_done: z.optional(z.array(z.int().check(z.positive())).check(z.maxLength(1000))),
});
type Input = z.infer<typeof Input>;

const NAME = "task_report";

const ANSWERS: Readonly<Record<Input["status"], string>> = {
  done: "Noted. The checks run when you stop.",
  blocked: "Noted. The task is paused for a person when you stop.",
  progress: "Noted.",
};

export const taskReport: Tool<Input> = {
  name: NAME,
  description:
    "Reports on the task: done (then stop), blocked (summary is your question to a person; then stop), or progress. steps_done: numbers of all steps done.",
  shape: "json",
  input: Input,
  effects: [],
  isReadOnly: () => true,
  deadlineMs: () => 5000,
  paths: () => [],
  describe: (args, place) => callItem(NAME, args, place),
  question: (args, place) => callQuestion(NAME, args, place),
  run: async (args, place) => callResult(callItem(NAME, args, place), ANSWERS[args.status]),
};
