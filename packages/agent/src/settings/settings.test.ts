import type { EventBody, StoredEvent, TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { SettingsPatch } from "./patch.ts";
import { resolveSettings } from "./resolve.ts";
import { storedSettings } from "./stored.ts";
import { patchOf, storedForm } from "./stored-keys.ts";

const SETTINGS: TurnSettings = {
  provider: "mock",
  model: "one",
  sandboxMode: "workspace-write",
  networkAccess: true,
  writableRoots: ["/more"],
  approvalPolicy: "never",
};
const KEPT = { ...SETTINGS, runner: "embedded", mode: "default" };

function past(...bodies: readonly EventBody[]): readonly StoredEvent[] {
  return bodies.map((body, index) => ({
    stream: "t",
    version: index + 1,
    position: index + 1,
    id: String(index),
    at: 0,
    author: "user:owner",
    body,
    prevHash: "",
    hash: "",
  }));
}

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const turn = (settings: Partial<TurnSettings> = {}, once?: string[]): EventBody => ({
  type: "turn.admitted",
  v: 1,
  turnId: "x",
  input: [],
  settings: { ...SETTINGS, ...settings },
  ...(once === undefined ? {} : { once }),
  holder,
});
const change = (changes: Record<string, unknown>): EventBody => ({ type: "thread.settings-changed", v: 1, changes });

test("the last turn and what was changed since are told apart; null gives a value back to the configuration", () => {
  expect(storedSettings(past(turn(), change({ model: "two", effort: "low", cwd: "/there" })))).toEqual({
    turn: { ...KEPT, model: undefined },
    thread: { model: "two", effort: "low" },
    workspace: "/there",
    hasClientTools: false,
  });
  const after = storedSettings(
    past(turn(), change({ model: "two" }), turn({ model: "three" }), change({ model: null })),
  );
  expect(after.thread).toEqual({});
  expect(after.turn).not.toHaveProperty("model");
  expect(after.turn).not.toHaveProperty("provider");
});

test("what counted for one turn alone is as it was before", () => {
  const stored = storedSettings(
    past(turn(), change({ effort: "low" }), turn({ model: "two", effort: "high" }, ["model", "effort"])),
  );
  expect(stored.turn).toMatchObject({ model: "one" });
  expect(stored.thread).toEqual({ effort: "low" });
});

test("a sandbox mode brings its own network and folders, a model leaves the question who serves it", () => {
  const { turn: before, thread } = storedSettings(
    past(turn(), change({ sandbox: "read-only", model_provider: "a" }), change({ model: "two" })),
  );
  expect(thread).toEqual({ sandboxMode: "read-only", model: "two" });
  expect(before).toMatchObject({ provider: "a" });
  expect(before).not.toHaveProperty("networkAccess");
});

test("an envelope that is named stays until a sandbox mode is named, and a hop names one", () => {
  const settle = (stored: ReturnType<typeof storedSettings>, values: SettingsPatch = {}) =>
    resolveSettings({
      config: [{ source: "file", values: { envelope: "review", ceiling: "edit" } }],
      stored,
      asked: [{ source: "request", values }],
    });
  const named = storedSettings(past(turn({ envelope: "test" })));
  expect(settle(named).values).toMatchObject({ envelope: "test", ceiling: "edit" });
  expect(settle(named).sources).toMatchObject({ envelope: "turn", ceiling: "file" });
  expect(settle(named, { sandboxMode: "read-only" }).values).not.toHaveProperty("envelope");
  expect(settle(named, { envelope: "plan" }).values).toMatchObject({ envelope: "plan" });
  expect(settle(storedSettings(past(turn(), change({ ceiling: "explore" })))).sources).toMatchObject({
    ceiling: "thread",
  });
  // The mode of the last turn counts more than what the file names.
  expect(settle(storedSettings(past(turn()))).values).not.toHaveProperty("envelope");
  expect(storedSettings(past(turn({ envelope: "test" }), change({ sandbox: "read-only" }))).turn).not.toHaveProperty(
    "envelope",
  );
  const hop = { to: "edit", channel: "model", reason: "ready", guards: [] } as const;
  const entered: EventBody = {
    type: "envelope.entered",
    v: 1,
    cause: "hop",
    envelope: {
      id: "edit",
      tools: [],
      effects: [],
      writeRoots: [],
      masked: [],
      network: "none",
      sandbox: "required",
      approval: "never",
    },
    envelopeHash: "h",
    sandboxLevel: "none",
    depth: 1,
    hop: { ...hop, guards: [] },
  };
  const hopped = storedSettings(past(turn({ envelope: "explore" }), entered));
  expect(settle(hopped).values).toMatchObject({ envelope: "edit" });
  expect(settle(hopped).sources).toMatchObject({ envelope: "thread" });
});

test("settings of other doors that mean nothing here are passed over, and what is said is kept in them", () => {
  expect(patchOf({ model: 7, effort: "auto", sandbox: "huge", runner: 7, approval_policy: "always" })).toEqual({
    approvalPolicy: "untrusted",
  });
  const patch = { model: "m", mode: "plan", writableRoots: ["/a"], contextTokens: 5 } as const;
  expect(patchOf(storedForm(patch))).toEqual(patch);
});

test("later wins value by value, and every value knows where it comes from", () => {
  const stored = storedSettings(past(turn(), change({ effort: "low" })));
  const { values, sources, isProviderOpen } = resolveSettings({
    config: [
      { source: "default", values: { sandboxMode: "read-only", networkAccess: false, writableRoots: [] } },
      { source: "file", values: { model: "filed", compactAtTokens: 9 } },
    ],
    stored,
    asked: [{ source: "request", values: { model: "asked", sandboxMode: "workspace-write" } }],
  });
  expect(values).toEqual({
    runner: "embedded",
    provider: "mock",
    model: "asked",
    effort: "low",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
    mode: "default",
    compactAtTokens: 9,
  });
  expect(sources).toEqual({
    runner: "turn",
    provider: "turn",
    model: "request",
    effort: "thread",
    sandboxMode: "request",
    networkAccess: "default",
    writableRoots: "default",
    approvalPolicy: "turn",
    mode: "turn",
    compactAtTokens: "file",
  });
  expect(isProviderOpen).toBe(true);
});

test("a model that was named for one runner means nothing to another, and counts again when that one is back", () => {
  const config = [{ source: "file", values: { model: "filed", effort: "high" } }] as const;
  const stored = storedSettings(past(turn({ runner: "codex", provider: "codex", model: "theirs" })));
  const settle = (values: SettingsPatch) => resolveSettings({ config, stored, asked: [{ source: "flag", values }] });
  expect(settle({}).values).toMatchObject({ runner: "codex", model: "theirs" });
  expect(settle({}).values).not.toHaveProperty("effort");
  expect(settle({ runner: "claude" }).values).not.toHaveProperty("model");
  expect(settle({ runner: "claude", model: "asked" })).toMatchObject({
    values: { runner: "claude", model: "asked" },
    sources: { runner: "flag", model: "flag" },
  });
  const back = settle({ runner: "embedded" }).values;
  expect(back).toMatchObject({ runner: "embedded", model: "filed", effort: "high" });
  expect(back).not.toHaveProperty("provider");
});

test("another provider goes without the model and the effort of the one before", () => {
  const asked = [{ source: "request", values: { provider: "other" } }] as const;
  const { values } = resolveSettings({ config: [], stored: storedSettings(past(turn({ effort: "low" }))), asked });
  expect(values).toMatchObject({ provider: "other", sandboxMode: "workspace-write" });
  expect(values).not.toHaveProperty("model");
  expect(values).not.toHaveProperty("effort");
});

test("instructions are kept from turn to turn; the instructions of a mode go with it", () => {
  const given = { baseInstructions: "", developerInstructions: "be brief", verbosity: "low", summary: "none" } as const;
  const stored = storedSettings(past(turn({ ...given, modeInstructions: "of the mode", guideBytes: 5 })));
  expect(stored.turn).toEqual({ ...KEPT, ...given, modeInstructions: "of the mode" });
  const asked = (values: SettingsPatch) =>
    resolveSettings({ config: [], stored, asked: [{ source: "request", values }] }).values;
  expect(asked({ mode: "default", summary: "auto" })).toEqual({ ...KEPT, ...given, summary: "auto" });
  expect(asked({}).modeInstructions).toBe("of the mode");
  const words = { model_verbosity: "loud", personality: "grumpy", service_tier: "flex", project_doc_max_bytes: 0 };
  expect(patchOf(words)).toEqual({ serviceTier: "flex", guideBytes: 0 });
});

test("15.7: the policy of the environment is joined key by key, and a stored one is read without what was redacted", () => {
  const policy = { shell_environment_policy: { set: { B: "thread", C: "[redacted:github-token]" } } };
  const stored = storedSettings(past(turn({ environment: { inherit: "none" } }), change(policy)));
  const { values } = resolveSettings({
    config: [{ source: "file", values: { environment: { inherit: "core", set: { A: "file", B: "file" } } } }],
    stored,
    asked: [{ source: "request", values: { environment: { exclude: ["X"] } } }],
  });
  expect(values.environment).toEqual({ inherit: "core", set: { A: "file", B: "thread" }, exclude: ["X"] });
  expect(patchOf(storedForm({ environment: { includeOnly: ["P"], ignoresDefaultExcludes: true } }))).toEqual({
    environment: { includeOnly: ["P"], ignoresDefaultExcludes: true },
  });
});
