import { expect, test } from "vitest";
import { openLoomSettings } from "./openloom.ts";

test("19: OpenLoom's variables are defaults for what tasks do not say", () => {
  const settings = openLoomSettings({
    OPENLOOM_MAX_TASK_TOKENS: "5000",
    OPENLOOM_MAX_TASK_RUNTIME_MINUTES: "10",
    OPENLOOM_AUTO_ACCEPT_PERMISSIONS: "false",
    OPENLOOM_VERBOSE: "yes",
  });
  expect(settings).toEqual({
    defaults: { budget: { tokens: 5000, timeMs: 600_000 }, approval: "on-request" },
    isVerbose: true,
    warnings: [],
  });
});

test("a variable that means nothing here is named with what to use instead, never with its value", () => {
  const { warnings, defaults } = openLoomSettings({
    OPENLOOM_OPENCODE_PASSWORD: "secret-word",
    OPENLOOM_DATABASE: "/x",
    OPENLOOM_MAX_TASK_TOKENS: "many",
  });
  expect(warnings).toEqual([
    "OPENLOOM_OPENCODE_PASSWORD has no effect; heddle login stores keys",
    "OPENLOOM_DATABASE has no effect; set HEDDLE_HOME",
    "OPENLOOM_MAX_TASK_TOKENS is not a whole number above 0 and has no effect",
  ]);
  expect(defaults).toEqual({});
});
