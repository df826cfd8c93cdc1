/** Tasks in every state that a person meets, and the pages that show them. */
import type { Task } from "@heddle/client";
import { comesTo, order, orderQuestion, run } from "./orders.ts";
import type { Stage } from "./stage.ts";

export interface Field {
  readonly tasks: Readonly<Record<string, Task>>;
  /** By a name for the test, the address. */
  readonly pages: Readonly<Record<string, string>>;
}

export async function openField(stage: Stage): Promise<Field> {
  const { tasks: client } = stage.server.client;
  const touches = (mark: string) => [{ calls: [run(`touch ${mark}.txt`)] }, { text: "It is done." }];
  stage.plays("verified", touches("verified"));
  stage.plays("claimed", [{ text: "It is done." }]);
  const verified = await comesTo(stage, (await order(stage, "verified")).id, "verified");
  const claimed = await comesTo(stage, (await order(stage, "claimed", { checks: [] })).id, "claimed");
  const short = await order(stage, "unproven", { budget: { turns: 1 } });
  const unproven = await comesTo(stage, short.id, "paused");
  const cancelled = await client.cancel((await order(stage, "cancelled", { depends_on: [short.id] })).id);
  const dependent = await comesTo(stage, (await order(stage, "dependent", { depends_on: [short.id] })).id, "waiting");
  const asking = await comesTo(stage, (await orderQuestion(stage, "asking")).id, "waiting");
  const tasks = { verified, claimed, unproven, cancelled, dependent, asking };
  const runs = Object.entries(tasks).map(([name, { id }]) => [`run, ${name}`, `/tasks/${id}`]);
  return {
    tasks,
    pages: {
      now: "/now",
      tasks: "/tasks",
      board: "/tasks?view=board",
      ...Object.fromEntries(runs),
      threads: "/threads",
      thread: `/threads/${verified.threadId ?? ""}`,
      evidence: "/evidence",
      usage: "/usage",
      settings: "/settings",
      "new task": "/new",
      nowhere: "/no/such/place",
    },
  };
}
