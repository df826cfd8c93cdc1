/** `task_report`: the agent's report on its task. It changes nothing; the harness reads it. */
import { textTool } from "../calls/call-item.ts";
import { z } from "./schema.ts";

const Input = z.object({
  status: z.enum(["done", "blocked", "progress"]),
  summary: z.string().check(z.maxLength(4000)),
  steps_done: z.optional(z.array(z.int().check(z.positive())).check(z.maxLength(1000))),
});
type Input = z.infer<typeof Input>;

const ANSWERS: Readonly<Record<Input["status"], string>> = {
  done: "Noted. The checks run when you stop.",
  blocked: "Noted. The task is paused for a person when you stop.",
  progress: "Noted.",
};

export const taskReport = textTool<Input>({
  name: "task_report",
  description:
    "Reports on the task: done (then stop), blocked (summary is your question to a person; then stop), or progress. steps_done: numbers of all steps done.",
  input: Input,
  effects: [],
  deadlineMs: () => 5000,
  run: async ({ status }) => ANSWERS[status],
});
