/** Input that waits for its turn: added, changed, moved, deleted, and started after an interrupt. */
import { command, say } from "../../exec-case.ts";
import { text, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };

const add = (name: string): Move => ({
  call: "thread/queue/add",
  params: { ...ON_THREAD, input: text(name), clientUserMessageId: name },
  keep: { [name]: "queuedSubmission.id" },
});

const queue = (method: "list" | "update" | "reorder" | "start" | "delete", params: object = {}): Move => ({
  call: `thread/queue/${method}`,
  params: { ...ON_THREAD, ...params },
});

const INTERRUPTED: readonly Move[] = [
  { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
  { until: "turn/completed" },
];
/** A turn that is at work. */
const AT_WORK: readonly Move[] = [
  ...threadStarted({}, true),
  ...turn("one", "item/started"),
  { until: "item/started", where: { item: { type: "commandExecution" } } },
];

export const QUEUE: readonly Scenario[] = [
  {
    id: "queue-changed",
    about: "what waits is changed, moved and deleted while a turn runs, and then begins in its order",
    script: [command("sleep 1"), say("One."), say("Two."), say("Three.")],
    moves: [
      ...AT_WORK,
      add("bb"),
      add("cc"),
      add("dd"),
      queue("update", { queuedSubmissionId: "{dd}", input: text("dd changed") }),
      queue("reorder", { queuedSubmissionIds: ["{bb}", "{dd}", "{cc}"] }),
      queue("list"),
      queue("delete", { queuedSubmissionId: "{cc}" }),
      queue("delete", { queuedSubmissionId: "{cc}" }),
      queue("list"),
      { until: "turn/completed" },
      { until: "turn/completed" },
      { until: "turn/completed" },
      queue("list"),
    ],
  },
  {
    id: "queue-refused",
    about: "changes of what does not wait, or in a way that loses something",
    script: [command("sleep 1"), say("One."), say("Two.")],
    moves: [
      ...AT_WORK,
      add("bb"),
      queue("update", { queuedSubmissionId: "nope", input: text("x") }),
      queue("update", { queuedSubmissionId: "{bb}", input: [] }),
      queue("reorder", { queuedSubmissionIds: [] }),
      queue("reorder", { queuedSubmissionIds: ["{bb}", "{bb}"] }),
      queue("reorder", { queuedSubmissionIds: ["nope"] }),
      queue("start", { queuedSubmissionId: "{bb}" }),
      queue("start"),
      { until: "turn/completed" },
      { until: "turn/completed" },
      queue("start"),
      queue("start", { queuedSubmissionId: "{bb}" }),
    ],
  },
  {
    id: "queue-interrupted",
    about: "behind an interrupt the queue waits, until its client starts it",
    script: [command("sleep 20"), say("Two."), say("Three.")],
    moves: [
      ...AT_WORK,
      add("bb"),
      add("cc"),
      ...INTERRUPTED,
      queue("list"),
      queue("start", { queuedSubmissionId: "{cc}" }),
      { until: "turn/completed" },
      { until: "turn/completed" },
      queue("list"),
    ],
  },
  {
    id: "queue-interrupted-then-turn",
    about: "behind an interrupt the queue waits, also for what comes later, until another turn has ended",
    script: [command("sleep 20"), say("Two."), say("Three.")],
    moves: [
      ...AT_WORK,
      ...INTERRUPTED,
      add("bb"),
      queue("list"),
      ...turn("direct"),
      { until: "turn/completed" },
      queue("list"),
    ],
  },
];
