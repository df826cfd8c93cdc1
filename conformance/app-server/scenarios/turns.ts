/** Turns: their items, steering, interrupting, failing. */
import { command, patch, say } from "../../exec-case.ts";
import { responsesBody } from "../responses-body.ts";
import { initialize, text, threadStarted, turn, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const PNG =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function message(id: string, words: string): object {
  const content = [{ type: "output_text", text: words }];
  return { type: "message", id, role: "assistant", status: "completed", content };
}

export const TURNS: readonly Scenario[] = [
  {
    id: "hello",
    about: "a thread and a turn with one message",
    script: [say("Hello.")],
    moves: [...threadStarted(), ...turn("Hello")],
  },
  {
    id: "not-initialized-word",
    about: "a client that never says initialized",
    script: [say("Hello.")],
    moves: [
      initialize(),
      { call: "thread/start", params: { cwd: "{ws}", sandbox: "read-only" } },
      { until: "thread/started" },
      ...turn("Hello"),
    ],
  },
  {
    id: "reasoning-command-message",
    about: "a turn that thinks, runs a command and answers",
    script: [{ reasoning: "Thinking hard about it", ...command("echo one; sleep 0.3; echo two") }, say("All done.")],
    moves: [...threadStarted(), ...turn("Do it")],
  },
  {
    id: "command-fails",
    about: "a command that fails",
    script: [command("sleep 0.3; echo no >&2; exit 3"), say("It failed.")],
    moves: [...threadStarted(), ...turn("Do it")],
  },
  {
    id: "patch",
    about: "a patch that adds and changes files",
    files: { "ws/old.txt": "one\ntwo\n" },
    script: [
      patch("*** Add File: new.txt", "+hello", "*** Update File: old.txt", "@@", "-one", "+eins", " two"),
      say("Patched."),
    ],
    moves: [...threadStarted(), ...turn("Patch it")],
  },
  {
    id: "patch-delete-move",
    about: "a patch that deletes a file and moves another",
    files: { "ws/gone.txt": "bye\nnow\n", "ws/old.txt": "one\ntwo\n" },
    script: [
      patch(
        "*** Delete File: gone.txt",
        "*** Update File: old.txt",
        "*** Move to: moved.txt",
        "@@",
        "-one",
        "+eins",
        " two",
      ),
      say("Patched."),
    ],
    moves: [...threadStarted(), ...turn("Patch it")],
  },
  {
    id: "skill-input",
    about: "a skill that the client names goes to the model whole",
    files: { "ws/.agents/skills/demo/SKILL.md": "---\nname: demo\ndescription: a demo\n---\n\nUse the word cobalt.\n" },
    script: [say("Cobalt."), say("Noted.")],
    marks: ["<skill>", "<name>demo</name>", "Use the word cobalt."],
    moves: [
      ...threadStarted(),
      {
        call: "turn/start",
        params: {
          threadId: "{thread}",
          input: [...text("Use it"), { type: "skill", name: "demo", path: "{ws}/.agents/skills/demo/SKILL.md" }],
        },
      },
      { until: "turn/completed" },
      {
        call: "turn/start",
        params: {
          threadId: "{thread}",
          input: [...text("And this"), { type: "mention", name: "Notes", path: "notes.md" }],
        },
      },
      { until: "turn/completed" },
    ],
  },
  {
    id: "message-empty-last",
    about: "an answer of two messages, the last of them empty",
    faults: [{ kind: "body", body: responsesBody(1, [message("msg_1", "First."), message("msg_2", "")]) }],
    moves: [...threadStarted(), ...turn("Do it")],
  },
  {
    id: "two-turns",
    about: "a second turn on the same thread",
    script: [say("First."), say("Second.")],
    moves: [...threadStarted(), ...turn("one"), ...turn("two")],
  },
  {
    id: "turn-settings",
    about: "a turn with a sandbox, an effort and a summary of its own",
    script: [say("Set.")],
    moves: [
      ...threadStarted(),
      ...turn("one", "turn/completed", {
        sandboxPolicy: { type: "workspaceWrite" },
        approvalPolicy: "on-request",
        effort: "low",
        summary: "auto",
        cwd: "{ws}",
        model: "gpt-5.5",
      }),
    ],
  },
  {
    id: "turn-settings-experimental",
    about: "the same for a client that knows experiments",
    script: [say("Set."), say("Again.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one", "turn/completed", { approvalPolicy: "on-request", effort: "low" }),
      ...turn("two"),
    ],
  },
  {
    id: "steer",
    about: "input while a command runs, with a wrong turn first, and when nothing runs any more",
    script: [command("sleep 1; echo slept"), say("Steered.")],
    moves: [
      ...threadStarted(),
      ...turn("slow", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "wrong", input: text("x") } },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "{turn}", input: text("steered") } },
      { until: "turn/completed" },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "{turn}", input: text("too late") } },
    ],
  },
  {
    id: "second-start-steers",
    about: "turn/start while a turn runs",
    script: [command("sleep 1; echo slept"), say("Both.")],
    moves: [
      ...threadStarted(),
      ...turn("slow", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      ...turn("second"),
    ],
  },
  {
    id: "interrupt",
    about: "a turn is stopped while a command runs, and once more after that",
    script: [command("sleep 20; echo slept"), say("Never.")],
    moves: [
      ...threadStarted(),
      ...turn("slow", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
      { until: "turn/completed" },
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" }, isLeft: true },
    ],
  },
  {
    id: "interrupt-model",
    about: "a turn is stopped while the model answers",
    script: [say("Never said to the end.")],
    faults: { kind: "stall", at: "after-headers" },
    moves: [
      ...threadStarted(),
      ...turn("slow", "item/completed"),
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "interrupt-steered",
    about: "a turn is stopped before the model is told what was added, which the thread does not show",
    script: [command("sleep 20"), say("Two.")],
    marks: ["PINE"],
    moves: [
      ...threadStarted(),
      ...turn("one", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "{turn}", input: text("PINE") } },
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
      { until: "turn/completed" },
      ...turn("two"),
    ],
  },
  {
    id: "interrupt-compact",
    about: "a compaction is stopped while the model sums up, and the thread goes on",
    script: [say("First."), say("Second.")],
    faults: [undefined, { kind: "stall", at: "after-headers" }],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/compact/start", params: ON_THREAD },
      { until: "item/started", where: { item: { type: "contextCompaction" } }, keep: { turn: "turnId" } },
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
      { until: "turn/completed" },
      ...turn("two"),
    ],
  },
  {
    id: "steer-compact",
    about: "input while a thread is compacted, by steering and as a turn, and an interrupt",
    script: [say("First."), say("Second.")],
    faults: [undefined, { kind: "stall", at: "after-headers" }],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/compact/start", params: ON_THREAD },
      { until: "item/started", where: { item: { type: "contextCompaction" } }, keep: { turn: "turnId" } },
      {
        call: "turn/steer",
        params: { ...ON_THREAD, expectedTurnId: "{turn}", input: [{ type: "text", text: "also this" }] },
      },
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "interrupt-done",
    about: "a turn that is over is stopped",
    script: [say("Done.")],
    moves: [
      ...threadStarted(),
      ...turn("quick"),
      { call: "turn/interrupt", params: { ...ON_THREAD, turnId: "{turn}" } },
    ],
  },
  {
    id: "model-fails",
    about: "every request to the model fails with 500",
    faults: { kind: "status", status: 500, body: { error: { message: "broken" } } },
    moves: [...threadStarted(), ...turn("Hello")],
  },
  {
    id: "model-refuses",
    about: "the model refuses the request",
    faults: {
      kind: "status",
      status: 400,
      body: { error: { message: "no such thing", type: "invalid_request_error" } },
    },
    moves: [...threadStarted(), ...turn("Hello")],
  },
  {
    id: "model-recovers",
    about: "an answer breaks off once",
    script: [say("Whole.")],
    faults: [{ kind: "cut", at: "mid-delta" }],
    moves: [...threadStarted(), ...turn("Hello")],
  },
  {
    id: "output-schema",
    about: "an answer of a given shape",
    script: [say('{"answer":42}')],
    moves: [
      ...threadStarted(),
      ...turn("Hello", "turn/completed", {
        outputSchema: {
          type: "object",
          properties: { answer: { type: "number" } },
          required: ["answer"],
          additionalProperties: false,
        },
      }),
    ],
  },
  {
    id: "image",
    about: "an image in the input",
    script: [say("A dot.")],
    moves: [
      ...threadStarted(),
      { call: "turn/start", params: { ...ON_THREAD, input: [...text("Look"), { type: "image", url: PNG }] } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "compact",
    about: "the conversation is made smaller",
    script: [say("First."), say("Summary."), say("After.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/compact/start", params: ON_THREAD },
      { until: "turn/completed" },
    ],
  },
  {
    id: "shell-command",
    about: "a command of the user's",
    script: [say("First.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/shellCommand", params: { ...ON_THREAD, command: "echo from-shell" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "inject-items",
    about: "items put into the conversation from outside",
    script: [say("First."), say("Second.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      {
        call: "thread/inject_items",
        params: {
          ...ON_THREAD,
          items: [{ type: "message", role: "user", content: [{ type: "input_text", text: "injected" }] }],
        },
      },
    ],
  },
  {
    id: "review",
    about: "a review of what is not committed",
    script: [say("Looks fine.")],
    setUp: "echo x > a.txt",
    moves: [
      ...threadStarted(),
      { call: "review/start", params: { ...ON_THREAD, target: { type: "uncommittedChanges" }, delivery: "inline" } },
      { until: "turn/completed" },
    ],
  },
];
