/** What clients keep beside a thread, and what they change of a running turn. */
import { command, MOCK_CONFIG, say } from "../../exec-case.ts";
import { threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const NOBODY = "00000000-0000-0000-0000-000000000000";
const PR = { attachmentType: "pr", identityKey: "kk" };

const add = (params: object): Move => ({
  call: "thread/attachment/add",
  params: { ...ON_THREAD, ...PR, payload: { a: 1 }, ...params },
});
const list = (params: object = {}): Move => ({ call: "thread/attachment/list", params: { ...ON_THREAD, ...params } });
const owners = (params: object = {}): Move => ({ call: "thread/attachmentOwner/list", params: { ...PR, ...params } });
const REMOVE: Move = { call: "thread/attachment/remove", params: { ...ON_THREAD, ...PR } };
const UPDATED: Move = { until: "thread/attachment/updated" };
const STARTED: readonly Move[] = [...threadStarted({}, true), ...turn("one")];

const settings = (params: object): Move => ({
  call: "turn/settings/update",
  params: { ...ON_THREAD, turnId: "{turn}", ...params },
});

export const ATTACHMENTS: readonly Scenario[] = [
  {
    id: "attachment-kept",
    about: "something is attached to a thread, listed and removed",
    script: [say("One.")],
    moves: [
      ...STARTED,
      add({}),
      UPDATED,
      add({ payload: { a: 2 } }),
      add({ identityKey: "other", payload: "text" }),
      UPDATED,
      list(),
      { ...list({ limit: 1 }), keep: { cursor: "nextCursor" } },
      list({ limit: 1, cursor: "{cursor}" }),
      REMOVE,
      UPDATED,
      REMOVE,
      list(),
    ],
  },
  {
    id: "attachment-owners",
    about: "threads are found by what is attached to them",
    unsteady: ["thread/status/changed notLoaded"],
    script: [say("One.")],
    moves: [
      ...STARTED,
      owners(),
      add({}),
      UPDATED,
      owners(),
      owners({ archived: true }),
      { call: "thread/archive", params: ON_THREAD },
      { until: "thread/archived" },
      owners(),
      owners({ archived: false }),
    ],
  },
  {
    id: "attachment-refused",
    about: "what cannot be attached",
    script: [say("One.")],
    moves: [
      ...STARTED,
      add({ identityKey: "" }),
      add({ attachmentType: "" }),
      add({ payload: "y".repeat(70_000) }),
      add({ threadId: NOBODY }),
      { call: "thread/attachment/add", params: { ...ON_THREAD, ...PR } },
      list({ cursor: "nonsense" }),
      list({ threadId: NOBODY }),
    ],
  },
  {
    id: "running-turn-settings",
    about: "who reviews the approvals of a running turn; the rest is refused",
    script: [command("sleep 2"), say("One.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      settings({ approvalsReviewer: "user" }),
      settings({ approvalsReviewer: "user", turnId: "nope" }),
      settings({ approvalsReviewer: "nobody" }),
      settings({ approvalsReviewer: "auto_review" }),
      settings({ effort: "low" }),
      settings({ effort: "" }),
      settings({ model: "gpt-5.5" }),
      settings({}),
      settings({ cwd: "/" }),
      settings({ approvalsReviewer: "user", threadId: NOBODY }),
      { until: "turn/completed" },
    ],
  },
  {
    id: "running-turn-model",
    about: "model and effort of a running turn, where the feature is on",
    config: `${MOCK_CONFIG}\n[features]\nstep_model_switching = true\n`,
    script: [command("sleep 2"), say("One."), say("Two.")],
    marks: ["nowhere"],
    moves: [
      ...threadStarted({}, true),
      ...turn("one", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      settings({ effort: "low" }),
      settings({ model: "unheard-of" }),
      settings({ model: "gpt-5.6-sol" }),
      settings({ model: "" }),
      settings({ model: "unheard-of", turnId: "nope" }),
      settings({ effort: "high", turnId: "nope" }),
      settings({}),
      { until: "turn/completed" },
      ...turn("two"),
    ],
  },
  {
    id: "running-turn-model-of-thread",
    about: "the model of a running turn, where the client turns the feature on with its thread",
    script: [command("sleep 2"), say("One.")],
    marks: ["nowhere"],
    moves: [
      ...threadStarted({ config: { "features.step_model_switching": true } }, true),
      ...turn("one", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      settings({ model: "gpt-5.6-sol" }),
      { until: "turn/completed" },
    ],
  },
];
