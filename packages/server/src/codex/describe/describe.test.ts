import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { definitions, refsOf } from "./definitions.ts";
import { sessionSchema } from "./sessions.ts";
import { bundle, BUNDLE, jsonFiles } from "./json-files.ts";
import { tsFiles } from "./ts-files.ts";

const PUBLISHED = new URL("../../../../../schemas/codex-app-server.schemas.json", import.meta.url);
const ALL = { isExperimental: true };

test("W10: the published description is what the server serves (heddle schema app-server)", () => {
  expect(JSON.parse(readFileSync(PUBLISHED, "utf8"))).toEqual(bundle(ALL));
});

test("W10: the published description of sessions is what the server serves (heddle schema sessions)", () => {
  const published = new URL("../../../../../schemas/sessions.schema.json", import.meta.url);
  expect(JSON.parse(readFileSync(published, "utf8"))).toEqual(sessionSchema());
});

test("every name that is spoken of is there, in every file by itself", () => {
  const known = new Set(definitions(ALL).keys());
  expect(refsOf([...definitions(ALL).values()]).filter((name) => !known.has(name))).toEqual([]);
  for (const [path, content] of jsonFiles(ALL)) {
    const file = JSON.parse(content) as { readonly definitions?: object };
    const here = new Set(Object.keys(file.definitions ?? {}));
    expect([path, refsOf(file).filter((name) => !here.has(name))]).toEqual([path, []]);
  }
});

test("what is experimental is left out unless it is asked for", () => {
  const stable = jsonFiles({ isExperimental: false });
  expect(stable.has("v2/ThreadGoalSetParams.json")).toBe(true);
  expect(stable.has("v2/ThreadSearchParams.json")).toBe(false);
  expect(jsonFiles(ALL).has("v2/ThreadSearchParams.json")).toBe(true);
  expect(stable.get(BUNDLE)).not.toContain("thread/search");
});

test("types read as their schemas do", () => {
  const files = tsFiles(ALL);
  expect(files.get("v2/ThreadRevertParams.ts")).toContain(
    "export type ThreadRevertParams = { threadId: string; beforeTurnId: string };",
  );
  expect(files.get("v2/GitInfo.ts")).toContain(
    "{ sha: string | null; branch: string | null; originUrl: string | null }",
  );
  expect(files.get("ClientRequest.ts")).toContain(
    '{ method: "thread/start"; id: RequestId; params: ThreadStartParams }',
  );
  expect(files.get("v2/ThreadStartParams.ts")).toContain("model?: string | null");
});
