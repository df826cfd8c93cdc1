import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { envelopeFor } from "./envelopes.ts";
import childOffers from "../builtin/child-offers.json" with { type: "json" };
import messageOffers from "../builtin/message-offers.json" with { type: "json" };
import { makeChildOffers, makeMessageOffers, makeOffers } from "../builtin/make-offers.ts";
import offers from "../builtin/offers.json" with { type: "json" };
import { toolsFor, type ToolFamily } from "./registry.ts";

const FAMILIES: readonly ToolFamily[] = ["openai", "anthropic", "gemini", "other"];
const options = { workspace: "/w", writableRoots: [], networkAccess: false, approval: "never", masked: [] } as const;
const edit = envelopeFor({ ...options, mode: "workspace-write" });
const explore = envelopeFor({ ...options, mode: "read-only" });
const names = (family: ToolFamily, envelope = edit): string[] =>
  toolsFor(family, envelope).offered.map(({ name }) => name);

test("each family is offered the names it knows", () => {
  expect(names("openai")).toEqual(["exec_command", "write_stdin", "apply_patch", "update_plan", "view_image"]);
  const general = ["bash", "bash_input", "read", "edit", "write", "list", "glob", "grep", "update_plan", "view_image"];
  expect(names("anthropic")).toEqual(general);
  expect(names("other")).toEqual(general);
  expect(names("gemini")).toEqual([
    "run_shell_command",
    "shell_input",
    "read_file",
    "replace",
    "write_file",
    "list_directory",
    "glob",
    "search_file_content",
    "update_plan",
    "view_image",
  ]);
});

test("what writes is not offered where nothing may be written", () => {
  expect(names("openai", explore)).toEqual(["exec_command", "write_stdin", "update_plan", "view_image"]);
  expect(names("anthropic", explore)).not.toEqual(expect.arrayContaining(["edit"]));
  expect(names("gemini", explore)).toEqual(expect.not.arrayContaining(["replace", "write_file"]));
});

test("a tool beyond the effect ceiling is not offered even when it is listed", () => {
  expect(names("openai", { ...edit, effects: ["read"] })).toEqual(["update_plan", "view_image"]);
});

test.each(FAMILIES)("the tools of %s take at most 5 kB of a request", (family) => {
  const bytes = Buffer.byteLength(JSON.stringify(toolsFor(family, edit).offered));
  expect(bytes).toBeLessThanOrEqual(5 * 1024);
});

test.each(FAMILIES)("the schemas of %s are plain objects with described, listed fields", (family) => {
  for (const tool of toolsFor(family, edit).offered) {
    expect(tool.description.length).toBeGreaterThan(10);
    if (tool.shape === "freeform") expect(tool.parameters).toBeUndefined();
    else expect(tool.parameters).toMatchObject({ type: "object", properties: expect.any(Object) });
    expect(JSON.stringify(tool.parameters ?? {})).not.toMatch(/\$schema|9007199254740991|[mM]inimum|default":/);
  }
});

test("a name resolves to what it is in its own family only", () => {
  expect(toolsFor("gemini", edit).resolve("replace")).toEqual({
    name: "edit",
    effects: ["read", "write"],
    shape: "json",
  });
  expect(toolsFor("openai", edit).resolve("bash")).toBeUndefined();
  expect(toolsFor("openai", edit).resolve("__proto__")).toBeUndefined();
});

test("every tool an envelope names exists in some family", () => {
  const known = new Set(
    FAMILIES.flatMap((family) => names(family).map((name) => toolsFor(family, edit).resolve(name)?.name)).concat(
      toolsFor("openai", edit, { skillFolder: "/skills" }).resolve("skill")?.name,
    ),
  );
  expect(known).toEqual(new Set(edit.tools));
});

test("what is offered is what the tools say of themselves", async () => {
  // Stale: npm run offers
  expect(offers).toEqual(await makeOffers());
  expect(childOffers).toEqual(makeChildOffers());
  expect(messageOffers).toEqual(makeMessageOffers());
});

test("D11: no file but dispatch runs a tool, and the index exports none", async () => {
  const folder = import.meta.dirname;
  const files = (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
  );
  const callers: string[] = [];
  const importers: string[] = [];
  for (const name of files) {
    const source = await readFile(join(folder, name), "utf8");
    if (/tool\w*\.run\b|\.run\(args|\brun\.(call|apply|bind)\(|\["run"\]/i.test(source)) callers.push(name);
    if (/(?:from |import\()"\.{1,2}\/builtin\/(?!offers\.json)/.test(source)) importers.push(name);
  }
  expect(callers).toEqual(["dispatch.ts"]);
  expect(importers).toEqual(["registry.ts"]);
  const exported = Object.keys(await import("../index.ts"));
  expect(exported).not.toEqual(expect.arrayContaining(["findTool"]));
  expect(exported).not.toEqual(expect.arrayContaining(["toolNamed"]));
});
