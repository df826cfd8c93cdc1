/** Answers as servers send them that are not OpenAI's own. */
import { json, say, type ExecCase } from "../exec-case.ts";

type Fields = Readonly<Record<string, unknown>>;
type Event = Fields & { readonly type: string };

const usage = { input_tokens: 100, output_tokens: 20, total_tokens: 120 };

/** One answer, as events of the Responses API. */
function answer(events: readonly Event[], output: readonly Fields[]): { kind: "body"; body: string } {
  const response = { id: "resp_1", object: "response", output: [], usage: null };
  const all = [
    { type: "response.created", response: { ...response, status: "in_progress" } },
    ...events,
    { type: "response.completed", response: { ...response, status: "completed", output, usage } },
  ];
  return {
    kind: "body",
    body: all.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
  };
}

const event = (type: string, fields: Fields): Event => ({ type: `response.${type}`, ...fields });

const PREAMBLE: Fields = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Looking.", annotations: [] }],
};
const running = (word: string): Fields => ({
  id: `fc_${word}`,
  type: "function_call",
  status: "completed",
  call_id: `call_${word}`,
  name: "exec_command",
  arguments: JSON.stringify({ cmd: `echo ${word} | tee ${word}`, login: false }),
});
const ONE = running("one");
const TWO = running("two");

/** A message in two deltas, then two commands, numbered as the server does it. */
function items(index: (at: number) => Fields): readonly Event[] {
  return [
    event("output_item.added", { item: { ...PREAMBLE, content: [], status: "in_progress" }, ...index(0) }),
    event("output_text.delta", { item_id: "msg_1", content_index: 0, delta: "Look", ...index(0) }),
    event("output_text.delta", { item_id: "msg_1", content_index: 0, delta: "ing.", ...index(0) }),
    event("output_item.done", { item: PREAMBLE, ...index(0) }),
    event("output_item.added", { item: { ...ONE, status: "in_progress" }, ...index(1) }),
    event("output_item.done", { item: ONE, ...index(1) }),
    event("output_item.added", { item: { ...TWO, status: "in_progress" }, ...index(2) }),
    event("output_item.done", { item: TWO, ...index(2) }),
  ];
}

const numbered = (output_index: number): Fields => ({ output_index });
const ALL = [PREAMBLE, ONE, TWO] as const;

function answered(id: string, about: string, first: ReturnType<typeof answer>): ExecCase {
  const runs = [json("--sandbox", "workspace-write")];
  return {
    id,
    about,
    faults: [first],
    script: [say("never said"), say("Done.")],
    runs,
    looksAt: ["ws/one", "ws/two"],
    isUnordered: true,
  };
}

export const WIRE_CASES: readonly ExecCase[] = [
  answered("index-each", "items with an index each", answer(items(numbered), ALL)),
  answered(
    "index-missing",
    "items without an index, as llama.cpp sends them",
    answer(
      items(() => ({})),
      ALL,
    ),
  ),
  answered(
    "index-same",
    "items that all have the index 0",
    answer(
      items(() => numbered(0)),
      ALL,
    ),
  ),
  answered(
    "index-missing-no-end",
    "items without an index, and an end that repeats none",
    answer(
      items(() => ({})),
      [],
    ),
  ),
  answered("items-in-end", "items that only the last event holds", answer([], ALL)),
  answered(
    "calls-in-end",
    "a message as an item, its calls only in the last event",
    answer(items(numbered).slice(0, 4), ALL),
  ),
  answered(
    "item-ids-missing",
    "items without an index and without ids",
    answer(
      items(() => ({})).map(({ item_id: _, item, ...fields }) => {
        const { id: _id, ...bare } = (item ?? {}) as Fields;
        return item === undefined ? fields : { ...fields, item: bare };
      }),
      [],
    ),
  ),
  {
    id: "text-unspaced",
    about: "an answer in a script without spaces",
    script: [say("這是一個沒有空格的回答".repeat(12))],
    runs: [json()],
  },
];

const SEARCHES: readonly Fields[] = [
  { type: "search", query: "weather in Berlin", queries: ["weather in Berlin"] },
  { type: "open_page", url: "https://example.com/weather" },
  { type: "find_in_page", url: "https://example.com/weather", pattern: "rain" },
];
const searched = SEARCHES.map((action, at) => ({
  id: `ws_${at}`,
  type: "web_search_call",
  status: "completed",
  action,
}));
const ANSWER: Fields = { ...PREAMBLE, content: [{ type: "output_text", text: "It rains.", annotations: [] }] };
const whole = (item: Fields, output_index: number): Event => event("output_item.done", { item, output_index });
export const SEARCHED = answer(
  [
    ...searched.flatMap((item, output_index) => [
      event("output_item.added", { item: { ...item, status: "in_progress" }, output_index }),
      whole(item, output_index),
    ]),
    event("output_item.added", { item: { ...ANSWER, content: [], status: "in_progress" }, output_index: 3 }),
    event("output_text.delta", { item_id: "msg_1", content_index: 0, delta: "It rains.", output_index: 3 }),
    whole(ANSWER, 3),
  ],
  [...searched, ANSWER],
);
const HELLO = [say("Hello.")];
const OPEN = ["--sandbox", "danger-full-access"];

export const SEARCH_CASES: readonly ExecCase[] = [
  {
    id: "search-live",
    about: "a search of the web, a page opened and looked through",
    faults: [SEARCHED],
    runs: [json(...OPEN, "-c", 'web_search="live"')],
  },
  {
    id: "search-human",
    about: "a search of the web, for people",
    faults: [SEARCHED],
    runs: [{ args: ["exec", ...OPEN, "-c", 'web_search="live"', "do it"] }],
  },
  {
    id: "search-flag",
    about: "--search before exec",
    faults: [SEARCHED],
    runs: [{ args: ["--search", "exec", "--json", ...OPEN, "do it"] }],
  },
  { id: "search-flag-after", about: "--search after exec", faults: [SEARCHED], runs: [json("--search", ...OPEN)] },
  {
    id: "search-read-only",
    about: "a search of the web, in a sandbox without the network",
    faults: [SEARCHED],
    runs: [json("--sandbox", "read-only", "-c", 'web_search="live"')],
  },
  {
    id: "search-indexed",
    about: "a search of the pages that the provider knows, and of its copies of them",
    script: HELLO,
    runs: [json("-c", 'web_search="indexed"'), json("-c", 'web_search="cached"')],
  },
  {
    id: "search-tool-table",
    about: "how the provider searches, as a table of tools",
    script: HELLO,
    runs: [
      json("-c", 'tools.web_search={context_size="low",allowed_domains=["example.com"]}'),
      json("-c", 'web_search="live"', "-c", 'tools.web_search.location={country="DE",city="Berlin"}'),
      json("-c", 'web_search="disabled"', "-c", "tools.web_search.context_size=low"),
    ],
  },
  { id: "search-tool", about: "the older switch of tools", script: HELLO, runs: [json("-c", "tools.web_search=true")] },
  {
    id: "search-tool-open",
    about: "the older switch of tools, and as a table, with full access",
    script: HELLO,
    runs: [json(...OPEN, "-c", "tools.web_search=true"), json(...OPEN, "-c", "tools.web_search.context_size=low")],
  },
  {
    id: "search-cached-open",
    about: "a search of copies alone, with full access",
    script: HELLO,
    runs: [json(...OPEN, "-c", 'web_search="cached"')],
  },
  {
    id: "search-tool-wrong",
    about: "a tool of searches that is neither a switch nor a table, and a table with a wrong value",
    script: HELLO,
    runs: [json("-c", 'tools.web_search="live"'), json("-c", "tools.web_search.context_size=huge")],
  },
  {
    id: "search-feature",
    about: "the older switches of features",
    script: HELLO,
    runs: [
      json("--enable", "web_search_request"),
      json("-c", "features.web_search_cached=true"),
      json("-c", "features.web_search=true"),
    ],
  },
  {
    id: "search-feature-overruled",
    about: "a switch of features where web_search says no",
    script: HELLO,
    runs: [json("-c", 'web_search="disabled"', "--enable", "web_search_request")],
  },
  {
    id: "search-wrong",
    about: "a kind of search that does not exist",
    runs: [json("-c", 'web_search="sometimes"')],
    script: [say("Hello.")],
  },
  {
    id: "search-resumed",
    about: "what was searched goes back with the next turn",
    faults: [SEARCHED],
    script: [say("never said"), say("Still raining.")],
    runs: [
      json(...OPEN, "-c", 'web_search="live"'),
      { args: ["exec", "resume", "--json", "--last", "-c", 'web_search="live"', "and now?"] },
    ],
  },
];
