/** What clients, configuration and guides tell the model: where it reaches it, and how long it holds. */
import { command, configured, say } from "../../exec-case.ts";
import { initialize, text, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const ANSWERS = ["One.", "Two.", "Three.", "Four.", "Five."].map(say);
const END = "turn/completed";
const BASE_AND_DEVELOPER = { baseInstructions: "BASE", developerInstructions: "DEVELOPER" };
const MARKS = ["BASE", "DEVELOPER"];
const OTHERS = { baseInstructions: "OTHERBASE", developerInstructions: "OTHERDEV" };
const NOTES = {
  additionalContext: {
    screen: { kind: "application", value: "SCREEN" },
    page: { kind: "untrusted", value: "PAGE" },
  },
};
const NOTE_MARKS = ["SCREEN", "PAGE"];

function forked(params: Readonly<Record<string, unknown>> = {}): readonly Move[] {
  return [
    { call: "thread/fork", params: { ...ON_THREAD, excludeTurns: true, ...params } },
    { until: "thread/started" },
    { call: "turn/start", params: { threadId: "{thread2}", input: text("in the fork") } },
    { until: END },
  ];
}

function resumed(params: Readonly<Record<string, unknown>> = {}): readonly Move[] {
  return [
    { restart: "a" },
    initialize({ isExperimental: true }),
    { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true, ...params } },
  ];
}

const AT_START: readonly Scenario[] = [
  {
    id: "instructions-at-start",
    about: "base and developer instructions hold for every turn, and in a fork",
    marks: MARKS,
    script: ANSWERS,
    moves: [...threadStarted(BASE_AND_DEVELOPER), ...turn("one"), ...turn("two"), ...forked()],
  },
  {
    id: "instructions-empty",
    about: "empty instructions are none",
    marks: ["CONFIGURED"],
    config: configured('instructions = "CONFIGURED"\ndeveloper_instructions = "CONFIGURED"'),
    script: ANSWERS,
    moves: [...threadStarted({ baseInstructions: "", developerInstructions: "" }), ...turn("one")],
  },
  {
    id: "instructions-no-text",
    about: "instructions that are no text",
    moves: [...threadStarted({ baseInstructions: 7 })],
  },
  {
    id: "instructions-restarted",
    about: "instructions are kept when the program starts again",
    marks: MARKS,
    script: ANSWERS,
    moves: [...threadStarted(BASE_AND_DEVELOPER), ...turn("one"), ...resumed(), ...turn("two")],
  },
  {
    id: "instructions-resumed-otherwise",
    about: "other instructions with thread/resume",
    marks: [...MARKS, "OTHERBASE", "OTHERDEV"],
    script: ANSWERS,
    moves: [...threadStarted({ baseInstructions: "FIRST" }), ...turn("one"), ...resumed(OTHERS), ...turn("two")],
  },
  {
    id: "instructions-forked-otherwise",
    about: "other instructions with thread/fork",
    marks: ["FIRST", "OTHERBASE", "OTHERDEV"],
    script: ANSWERS,
    moves: [...threadStarted({ baseInstructions: "FIRST" }), ...turn("one"), ...forked(OTHERS)],
  },
];

const CONFIGURED: readonly Scenario[] = [
  {
    id: "instructions-by-config",
    about: "everything a configuration tells the model, and what config/read says of it",
    marks: ["CONFIGURED", "FROMFILE", "DEVELOPER"],
    config: configured(
      'instructions = "CONFIGURED"\nmodel_instructions_file = "base.md"\ndeveloper_instructions = "DEVELOPER"\n' +
        'model_verbosity = "high"\nmodel_reasoning_summary = "detailed"\nservice_tier = "flex"',
    ),
    files: { "codex/base.md": "FROMFILE", "ws/base.md": "NOT THIS ONE" },
    script: ANSWERS,
    moves: [...threadStarted(), { call: "config/read", params: {} }, ...turn("one")],
  },
  {
    id: "instructions-by-config-overruled",
    about: "what a client says counts more than the configuration",
    marks: [...MARKS, "CONFIGURED"],
    config: configured('instructions = "CONFIGURED"\ndeveloper_instructions = "CONFIGURED"'),
    script: ANSWERS,
    moves: [...threadStarted(BASE_AND_DEVELOPER), ...turn("one")],
  },
  {
    id: "instructions-by-old-name",
    about: "the older name of the file with instructions",
    marks: ["FROMFILE"],
    config: configured('experimental_instructions_file = "{root}/base.md"'),
    files: { "base.md": "FROMFILE" },
    script: ANSWERS,
    moves: [...threadStarted(), ...turn("one")],
  },
  {
    id: "instructions-by-missing-file",
    about: "a file with instructions that is not there",
    config: configured('model_instructions_file = "{root}/none.md"'),
    moves: [...threadStarted()],
  },
  {
    id: "instructions-by-client-config",
    about: "instructions and more in the config of thread/start, and after a restart",
    marks: ["CLIENTBASE", "CLIENTDEV"],
    script: ANSWERS,
    moves: [
      ...threadStarted({
        config: {
          instructions: "CLIENTBASE",
          developer_instructions: "CLIENTDEV",
          model_verbosity: "high",
          model_reasoning_summary: "concise",
          service_tier: "flex",
        },
      }),
      ...turn("one"),
      ...resumed(),
      ...turn("two"),
    ],
  },
];

const PER_TURN: readonly Scenario[] = [
  {
    id: "instructions-with-turn",
    about: "context beside the input is told once, and again when it has changed",
    marks: [...NOTE_MARKS, "OTHERVIEW"],
    script: ANSWERS,
    moves: [
      ...threadStarted({}, true),
      ...turn("one", END, NOTES),
      ...turn("two", END, NOTES),
      ...turn("three", END, { additionalContext: { screen: { kind: "application", value: "OTHERVIEW" } } }),
    ],
  },
  {
    id: "instructions-with-turn-again",
    about: "context that the conversation holds already, in a fork and after a restart",
    marks: NOTE_MARKS,
    script: ANSWERS,
    moves: [...threadStarted({}, true), ...turn("one", END, NOTES), ...resumed(), ...turn("two", END, NOTES)],
  },
  {
    id: "instructions-with-turn-stable",
    about: "context needs the capability",
    moves: [...threadStarted(), ...turn("one", END, NOTES)],
  },
  {
    id: "instructions-with-steering",
    about: "context beside steering",
    marks: [...NOTE_MARKS, "STEERED"],
    script: [command("sleep 1"), say("Done.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one", "item/started", {}),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      {
        call: "turn/steer",
        params: { ...ON_THREAD, expectedTurnId: "{turn}", input: text("STEERED"), ...NOTES },
      },
      { until: END },
    ],
  },
  {
    id: "instructions-summary",
    about: "the summary of reasoning that a turn asks for holds for the next ones",
    marks: [],
    script: ANSWERS,
    moves: [
      ...threadStarted({}, true),
      ...turn("one", END, { summary: "concise" }),
      ...turn("two"),
      ...turn("three", END, { summary: "none" }),
      ...resumed(),
      ...turn("four"),
      ...turn("five", END, { summary: "loud" }),
    ],
  },
  {
    id: "instructions-tier",
    about: "the service tier of a thread, of one turn, of the turns from then on, and none",
    marks: [],
    script: [...ANSWERS, say("Six.")],
    moves: [
      ...threadStarted({ serviceTier: "flex" }, true),
      ...turn("one", END, { serviceTierForTurn: "priority" }),
      ...turn("two"),
      ...turn("three", END, { serviceTier: "fast" }),
      ...turn("four"),
      ...turn("five", END, { serviceTier: null }),
      ...turn("six", END, { serviceTier: "nonsense" }),
    ],
  },
  {
    id: "instructions-personality",
    about: "a personality is kept and changes nothing",
    marks: [],
    script: ANSWERS,
    moves: [
      ...threadStarted({ personality: "friendly" }, true),
      ...turn("one", END, { personality: "pragmatic" }),
      { call: "thread/settings/update", params: { ...ON_THREAD, personality: "none", summary: "detailed" } },
      ...turn("two"),
    ],
  },
  {
    id: "instructions-personality-unknown",
    about: "a personality that is none",
    moves: [...threadStarted({ personality: "grumpy" })],
  },
  {
    id: "instructions-by-mode",
    about: "the instructions of a mode hold until the mode is given again",
    marks: ["DEVELOPER", "OFMODE"],
    script: ANSWERS,
    moves: [
      ...threadStarted({ developerInstructions: "DEVELOPER" }, true),
      ...turn("one", END, { collaborationMode: mode("OFMODE") }),
      ...turn("two"),
      ...turn("three", END, { collaborationMode: mode(null) }),
    ],
  },
];

function mode(instructions: string | null): unknown {
  const settings = { model: "gpt-5.5", reasoning_effort: null, developer_instructions: instructions };
  return { mode: "default", settings };
}

const BY_GUIDES: readonly Scenario[] = [
  {
    id: "guides",
    about: "the guides of the home and of the repository",
    marks: ["HOMEGUIDE", "REPOGUIDE", "NEARGUIDE"],
    files: { "codex/AGENTS.md": "HOMEGUIDE", "ws/AGENTS.md": "REPOGUIDE", "ws/near/AGENTS.md": "NEARGUIDE" },
    script: ANSWERS,
    moves: [...threadStarted({ cwd: "{ws}/near" }), ...turn("one"), ...resumed(), ...forked()],
  },
  {
    id: "guides-overridden",
    about: "AGENTS.override.md in the place of AGENTS.md",
    marks: ["HOMEGUIDE", "REPOGUIDE", "HOMEOVERRIDE", "REPOOVERRIDE"],
    files: {
      "codex/AGENTS.md": "HOMEGUIDE",
      "codex/AGENTS.override.md": "HOMEOVERRIDE",
      "ws/AGENTS.md": "REPOGUIDE",
      "ws/AGENTS.override.md": "REPOOVERRIDE",
    },
    script: ANSWERS,
    moves: [...threadStarted(), ...turn("one")],
  },
  {
    id: "guides-overridden-blank",
    about: "a blank override silences a folder, and not the home",
    marks: ["HOMEGUIDE", "REPOGUIDE"],
    files: {
      "codex/AGENTS.md": "HOMEGUIDE",
      "codex/AGENTS.override.md": " ",
      "ws/AGENTS.md": "REPOGUIDE",
      "ws/AGENTS.override.md": " ",
    },
    script: ANSWERS,
    moves: [...threadStarted(), ...turn("one")],
  },
  {
    id: "guides-by-other-names",
    about: "other names for guides, the first one found",
    marks: ["CLAUDEGUIDE", "TEAMGUIDE"],
    config: configured('project_doc_fallback_filenames = ["CLAUDE.md", "TEAM.md"]'),
    files: { "ws/TEAM.md": "TEAMGUIDE", "ws/CLAUDE.md": "CLAUDEGUIDE" },
    script: ANSWERS,
    moves: [...threadStarted(), ...turn("one")],
  },
  {
    id: "guides-cut",
    about: "a limit for the guides of the repository, not for the home's",
    marks: ["HOMEGUIDE", "01234", "56789", "NEAR1", "NEAR2"],
    config: configured("project_doc_max_bytes = 15"),
    files: { "codex/AGENTS.md": "HOMEGUIDE", "ws/AGENTS.md": "0123456789", "ws/near/AGENTS.md": "NEAR1NEAR2" },
    script: ANSWERS,
    moves: [...threadStarted({ cwd: "{ws}/near" }), ...turn("one")],
  },
  {
    id: "guides-off",
    about: "a limit of none",
    marks: ["HOMEGUIDE", "REPOGUIDE"],
    config: configured("project_doc_max_bytes = 0"),
    files: { "codex/AGENTS.md": "HOMEGUIDE", "ws/AGENTS.md": "REPOGUIDE" },
    script: ANSWERS,
    moves: [...threadStarted(), ...turn("one")],
  },
];

export const INSTRUCTIONS: readonly Scenario[] = [...AT_START, ...CONFIGURED, ...PER_TURN, ...BY_GUIDES];
