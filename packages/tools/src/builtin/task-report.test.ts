import { expect, test } from "vitest";
import { envelopeFor, type EnvelopeOptions } from "../calls/envelopes.ts";
import { toolsFor } from "../calls/registry.ts";

const options: EnvelopeOptions = {
  mode: "workspace-write",
  workspace: "/w",
  writableRoots: [],
  networkAccess: false,
  approval: "never",
  masked: [],
};

test.each(["openai", "anthropic", "gemini", "other"] as const)(
  "task_report is offered to %s in turns of tasks alone",
  (family) => {
    const names = (isForTask: boolean): string[] =>
      toolsFor(family, envelopeFor({ ...options, isForTask })).offered.map(({ name }) => name);
    expect(names(true).filter((name) => !names(false).includes(name))).toEqual(["task_report"]);
  },
);
