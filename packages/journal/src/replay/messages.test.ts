import type { Envelope } from "@heddle/protocol";
import { expect, test } from "vitest";
import { admitted, completed } from "../suite/journal.samples.ts";
import { codes, EDIT, EXPLORE, replayed, started, thread, type Step } from "../suite/envelope.samples.ts";

const OWNER = "user:owner";
const AGENT = "agent:embedded";
const PARENT = { threadId: "thr_parent", spawnedBy: { turnId: "t0", itemId: "i0" } };

const child: Step = [OWNER, { type: "thread.created", v: 1, workspace: "/w", origin: "exec", parent: PARENT }];

interface Received {
  readonly author?: string;
  readonly role?: "command" | "context" | "quote";
  readonly from?: { readonly threadId: string };
  readonly envelope?: Envelope;
}

function received({ author = OWNER, role = "command", ...rest }: Received = {}): Step {
  const said = { messageId: "m1", kind: "tell", role, text: "go", inputs: [], hops: 0, wakes: true };
  return [author, { type: "message.received", v: 1, ...said, ...rest }];
}

/** A turn that the message started. */
function caused(envelope: Envelope, bound?: Envelope): readonly Step[] {
  const { input: _none, ...rest } = admitted("t1") as unknown as Record<string, unknown>;
  const bounds = bound === undefined ? {} : { bound };
  return [
    ["system", { ...rest, input: [], task: "message", messages: ["m1"], ...bounds }],
    ["system", started("t1", envelope)],
    completed("t1"),
  ];
}

const byAgent: Received = { author: AGENT, from: { threadId: "thr_other" } };
const unsaid: Received = { author: AGENT, from: { threadId: PARENT.threadId } };
const byParent: Received = { ...unsaid, envelope: EXPLORE };

test("commands of users start turns without a bound, talk of agents with one, and commands of the parent with its own", () => {
  const right: readonly (readonly Step[])[] = [
    [thread, received(), ...caused(EDIT)],
    [thread, received({ ...byAgent, role: "context" }), ...caused(EXPLORE, EXPLORE)],
    [child, received(byParent), ...caused(EXPLORE, EXPLORE)],
  ];
  for (const steps of right) expect(replayed(steps).findings).toEqual([]);
});

test.each<readonly [what: string, steps: readonly Step[], version: number]>([
  ["a command of an agent that is not the parent", [thread, received({ ...byAgent, envelope: EXPLORE })], 2],
  ["a command of the parent that does not say what the parent was allowed", [child, received(unsaid)], 2],
  ["a message of a user that says that a thread sent it", [thread, received({ from: { threadId: "thr_other" } })], 2],
  ["a turn that was started by a message that never came", [thread, ...caused(EXPLORE, EXPLORE)], 2],
])("Verify: message_without_authority: %s is found", (_what, steps, version) => {
  expect(codes(replayed(steps))).toEqual([["message_without_authority", version]]);
});

test.each<readonly [what: string, steps: readonly Step[], version: number]>([
  [
    "a turn without a bound that talk of an agent started",
    [thread, received({ ...byAgent, role: "context" }), ...caused(EDIT)],
    3,
  ],
  [
    "an envelope beyond the bound of its turn",
    [thread, received({ ...byAgent, role: "quote" }), ...caused(EDIT, EXPLORE)],
    4,
  ],
  [
    "a bound beyond what the sender of the command was allowed",
    [child, received(byParent), ...caused(EXPLORE, EDIT)],
    3,
  ],
])("Verify: beyond_message: %s is found", (_what, steps, version) => {
  expect(codes(replayed(steps))).toEqual([["beyond_message", version]]);
});
