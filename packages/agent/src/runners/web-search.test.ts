import type { TurnSettings } from "@heddle/protocol";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";
import { searchOf } from "./asker.ts";

const SETTINGS: TurnSettings = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: true,
  writableRoots: [],
  approvalPolicy: "never",
  webSearch: "live",
};

test.each<readonly [string, Partial<TurnSettings>, string | undefined]>([
  ["with the network", {}, "live"],
  ["with full access", { networkAccess: false, sandboxMode: "danger-full-access" }, "live"],
  ["without the network", { networkAccess: false }, undefined],
  ["in a task", { isForTask: true }, undefined],
  ["where only other tools exist", { allowedTools: ["exec_command"] }, undefined],
  ["where it is among the tools", { allowedTools: ["web_search"] }, "live"],
  ["where nobody asked", { webSearch: undefined }, undefined],
])("a turn %s", (_name, change, search) => {
  expect(searchOf({ ...SETTINGS, ...change } as TurnSettings)).toBe(search);
});

test("a provider without web search refuses before the turn begins", async () => {
  await using server = await startModelServer({ script: [{ text: "never" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-chat")],
    settings: { provider: "test", model: "some-model", networkAccess: true, webSearch: "live" },
  });
  await expect(t.start("go")).rejects.toMatchObject({ code: "usage.invalid" });
  expect(server.requests).toHaveLength(0);
});
