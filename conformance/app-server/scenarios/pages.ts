/** What clients ask for beside the main thing: pages, filters, places to cut, ids of their own, spans of their text. */
import { command, say } from "../../exec-case.ts";
import { text, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const START = { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write" };

/** A turn whose id is kept under a name. */
function kept(name: string, words: string): readonly Move[] {
  const params = { ...ON_THREAD, input: text(words) };
  return [{ call: "turn/start", params, keep: { [name]: "turn.id" } }, { until: "turn/completed" }];
}

const THREE_TURNS: readonly Move[] = [...kept("first", "one"), ...kept("second", "two"), ...kept("third", "three")];

export const PAGES: readonly Scenario[] = [
  {
    id: "resume-first-page",
    about: "a thread is resumed with a page of its turns",
    script: [say("One."), say("Two."), say("Three.")],
    moves: [
      ...threadStarted({}, true),
      ...THREE_TURNS,
      { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true, initialTurnsPage: { limit: 2 } } },
      {
        call: "thread/resume",
        params: {
          ...ON_THREAD,
          excludeTurns: true,
          initialTurnsPage: { limit: 1, sortDirection: "asc", itemsView: "full" },
        },
        keep: { cursor: "initialTurnsPage.nextCursor" },
      },
      { call: "thread/turns/list", params: { ...ON_THREAD, cursor: "{cursor}", limit: 1, sortDirection: "asc" } },
      { call: "thread/resume", params: { ...ON_THREAD, initialTurnsPage: { itemsView: "notLoaded" } } },
    ],
  },
  {
    id: "fork-before-turn",
    about: "a thread goes on under a new id from before a turn, after a turn, and with places that do not fit",
    script: [say("One."), say("Two."), say("Three."), say("Four.")],
    moves: [
      ...threadStarted({}, true),
      ...THREE_TURNS,
      { call: "thread/fork", params: { ...ON_THREAD, beforeTurnId: "{third}" } },
      { until: "thread/started" },
      { call: "thread/fork", params: { ...ON_THREAD, beforeTurnId: "{first}" } },
      { until: "thread/started" },
      { call: "thread/fork", params: { ...ON_THREAD, lastTurnId: "{first}" } },
      { until: "thread/started" },
      { call: "thread/fork", params: { ...ON_THREAD, beforeTurnId: "{third}", lastTurnId: "{first}" } },
      { call: "thread/fork", params: { ...ON_THREAD, beforeTurnId: "nowhere" } },
      { call: "thread/fork", params: { ...ON_THREAD, lastTurnId: "nowhere" } },
    ],
  },
  {
    id: "steer-client-id",
    about: "input for a running turn with an id of its client, by both ways",
    script: [command("sleep 1; echo slept"), say("Steered.")],
    moves: [
      ...threadStarted(),
      ...turn("slow", "item/started", { clientUserMessageId: "first" }),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      {
        call: "turn/steer",
        params: { ...ON_THREAD, expectedTurnId: "{turn}", input: text("steered"), clientUserMessageId: "second" },
      },
      { call: "turn/start", params: { ...ON_THREAD, input: text("started"), clientUserMessageId: "third" } },
      { until: "turn/completed" },
      { call: "thread/items/list", params: ON_THREAD },
    ],
  },
  {
    id: "text-elements",
    about: "spans of the input that a client draws in its own way come back with it",
    script: [say("Seen."), say("Seen again.")],
    moves: [
      ...threadStarted(),
      {
        call: "turn/start",
        params: {
          ...ON_THREAD,
          input: [
            {
              type: "text",
              text: "größer @file",
              text_elements: [
                { byteRange: { start: 9, end: 14 }, placeholder: "file" },
                { byteRange: { start: 0, end: 3 } },
              ],
            },
          ],
        },
      },
      { until: "turn/completed" },
      { call: "thread/items/list", params: ON_THREAD },
    ],
  },
  {
    id: "text-elements-wrong",
    about: "spans that are not inside the text",
    script: [say("Seen.")],
    moves: [
      ...threadStarted(),
      {
        call: "turn/start",
        params: {
          ...ON_THREAD,
          input: [
            { type: "text", text: "ä", text_elements: [{ byteRange: { start: 1, end: 99 }, placeholder: null }] },
          ],
        },
      },
      { until: "turn/completed" },
    ],
  },
  {
    id: "list-filters",
    about: "threads are listed by provider, and by filters that nothing fits",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/list", params: { modelProviders: ["mock"] } },
      { call: "thread/list", params: { modelProviders: ["other"] } },
      { call: "thread/list", params: { modelProviders: [] } },
      { call: "thread/list", params: { modelProviders: null, useStateDbOnly: true } },
      { call: "thread/list", params: { originators: ["probe"] } },
      { call: "thread/list", params: { originators: [] } },
      { call: "thread/list", params: { sectionId: null } },
      { call: "thread/list", params: { excludedThreadIds: ["{thread}"] } },
      { call: "thread/list", params: { excludedThreadIds: ["wrong"] } },
      { call: "thread/list", params: { excludedThreadIds: Array.from({ length: 101 }, () => "{thread}") } },
      { call: "thread/list", params: { sortKey: "section_entered_at" } },
      { call: "thread/list", params: { sortKey: "section_position" } },
      { call: "thread/list", params: { sectionId: "{thread}" } },
      { call: "thread/list", params: { sourceKinds: ["nobody"] } },
    ],
  },
  {
    id: "list-relations",
    about: "threads are listed by what they descend from and belong to",
    script: [say("One.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one"),
      { call: "thread/list", params: { parentThreadId: "{thread}" } },
      { call: "thread/list", params: { ancestorThreadId: "{thread}" } },
      { call: "thread/list", params: { attachedToThreadId: "{thread}" } },
      { call: "thread/list", params: { parentThreadId: "wrong" } },
      { call: "thread/list", params: { parentThreadId: "{thread}", ancestorThreadId: "{thread}" } },
      { call: "thread/list", params: { projectId: null } },
      { call: "thread/list", params: { projectId: "{thread}" } },
    ],
  },
  {
    id: "params-refused",
    about: "params that say a thread's past otherwise, or what cannot be",
    script: [say("One."), say("Two.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one"),
      { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true, history: [] } },
      { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true, initialTurnsPage: { limit: 0 } } },
      {
        call: "thread/resume",
        params: { ...ON_THREAD, excludeTurns: true, initialTurnsPage: { sortDirection: "up" } },
      },
      { call: "thread/fork", params: { ...ON_THREAD, excludeTurns: true, attachToSource: true, ephemeral: true } },
      { call: "thread/fork", params: { ...ON_THREAD, excludeTurns: true, experimentalPredictionMode: true } },
      { call: "turn/start", params: { ...ON_THREAD, input: text("x"), toolOutput: { name: "t", output: "o" } } },
    ],
  },
  {
    id: "list-backwards",
    about: "threads and turns are listed forwards, and back from where a page began",
    script: [command("sleep 1.2"), say("Two."), say("Three.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/start", params: START },
      { until: "thread/started" },
      { call: "turn/start", params: { threadId: "{thread2}", input: text("two") } },
      { until: "turn/completed" },
      { call: "turn/start", params: { threadId: "{thread2}", input: text("three") } },
      { until: "turn/completed" },
      { call: "thread/list", params: { limit: 1, sortDirection: "asc" }, keep: { next: "nextCursor" } },
      {
        call: "thread/list",
        params: { limit: 1, sortDirection: "asc", cursor: "{next}" },
        keep: { back: "backwardsCursor" },
      },
      { call: "thread/list", params: { sortDirection: "desc", cursor: "{back}" } },
      {
        call: "thread/turns/list",
        params: { threadId: "{thread2}", limit: 1 },
        keep: { next: "nextCursor", back: "backwardsCursor" },
      },
      { call: "thread/turns/list", params: { threadId: "{thread2}", limit: 5, cursor: "{next}" } },
      {
        call: "thread/turns/list",
        params: { threadId: "{thread2}", limit: 5, cursor: "{back}", sortDirection: "asc" },
      },
      { call: "thread/list", params: { cursor: "nonsense" } },
      { call: "thread/turns/list", params: { threadId: "{thread2}", cursor: "nonsense" } },
    ],
  },
];
