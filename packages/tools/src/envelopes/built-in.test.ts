import { readFileSync } from "node:fs";
import { BUILT_IN_ENVELOPE_IDS, Envelope, McpServerConfig } from "@heddle/protocol";
import { expect, test } from "vitest";
import { z } from "zod";
import { envelopeFor, envelopeHash } from "../calls/envelopes.ts";
import { requireEffects } from "../calls/registry.ts";
import { withinCeiling } from "../calls/within-ceiling.ts";
import { BUILT_IN_ENVELOPES, builtInEnvelope } from "./built-in.ts";
import { specProblems } from "./check-spec.ts";
import { resolveEnvelope, type Surroundings } from "./resolve.ts";
import { sandboxModeOf } from "./spec.ts";

const given: Surroundings = {
  workspace: "/w",
  writableRoots: ["/x"],
  networkAccess: false,
  approval: "never",
  masked: ["/home/me/.heddle"],
};
const resolved = (id: string, more: Partial<Surroundings> = {}): Envelope =>
  resolveEnvelope(builtInEnvelope(id), { ...given, ...more });
const isKnown = (id: string): boolean => BUILT_IN_ENVELOPES.has(id);

test("E8: the registry has the nine built-in envelopes, each by its own id, and each is an envelope of the protocol", () => {
  expect([...BUILT_IN_ENVELOPES.keys()]).toEqual([
    "explore",
    "plan",
    "edit",
    "test",
    "review",
    "deploy",
    "reflect",
    "observe",
    "full",
  ]);
  for (const [id, spec] of BUILT_IN_ENVELOPES) {
    expect(spec.id).toBe(id);
    expect(Envelope.parse(resolveEnvelope(spec, given)).id).toBe(id);
  }
});

test("E8: every published schema that takes the name of an envelope lists those of the registry", () => {
  const ids = [...BUILT_IN_ENVELOPES.keys()];
  expect(ids).toEqual(BUILT_IN_ENVELOPE_IDS);
  for (const name of ["chat.schema", "envelope.schema", "http-openapi", "sessions.schema", "task.schema"]) {
    const text = readFileSync(new URL(`../../../../schemas/${name}.json`, import.meta.url), "utf8");
    const lists = examplesIn(JSON.parse(text)).filter((examples) =>
      examples.some((one) => BUILT_IN_ENVELOPES.has(one)),
    );
    expect(lists.length, name).toBeGreaterThan(1);
    for (const examples of lists) expect(examples, name).toEqual(ids);
  }
});

function examplesIn(value: unknown): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [];
  const { examples } = z.object({ examples: z.array(z.string()).optional() }).safeParse(value).data ?? {};
  return [...(examples === undefined ? [] : [examples]), ...Object.values(value).flatMap(examplesIn)];
}

test("E2, E3, E5: every built-in envelope names tools that exist, within its effects, and edges that lead somewhere", () => {
  for (const spec of BUILT_IN_ENVELOPES.values()) expect(specProblems(spec, isKnown)).toEqual([]);
});

test("E3: a listed tool whose effects exceed the ceiling is found, also among those that exist only with a question", () => {
  const explore = builtInEnvelope("explore");
  expect(specProblems({ ...explore, tools: ["read", "write"] }, isKnown)).toEqual([
    { path: ["tools", 1], message: 'write has the effect "write", which is not among the effects' },
  ]);
  const searching = { ...explore, tools: ["web_search"], addsEffects: undefined };
  expect(specProblems(searching, isKnown)).toHaveLength(1);
  for (const { whenAsked, effects, ...spec } of BUILT_IN_ENVELOPES.values()) {
    const asked = { ...spec, tools: whenAsked?.tools ?? [], effects: [...effects, ...(whenAsked?.effects ?? [])] };
    expect(specProblems(asked, isKnown)).toEqual([]);
  }
});

test("E7: a tool without declared effects cannot register; one that has none says so", () => {
  expect(() => requireEffects({ name: "sly" })).toThrow("the tool sly declares no effects");
  expect(() => requireEffects({ name: "update_plan", effects: [] })).not.toThrow();
});

test("the sandbox modes are names for explore, edit and full", () => {
  expect(envelopeFor({ ...given, mode: "read-only" })).toEqual(resolved("explore"));
  expect(envelopeFor({ ...given, mode: "workspace-write" })).toEqual(resolved("edit"));
  expect(envelopeFor({ ...given, mode: "danger-full-access" })).toEqual(resolved("full"));
  const modes = [...BUILT_IN_ENVELOPES.values()].map((spec) => [spec.id, sandboxModeOf(spec)]);
  expect(Object.fromEntries(modes)).toEqual({
    explore: "read-only",
    plan: "read-only",
    edit: "workspace-write",
    test: "workspace-write",
    review: "read-only",
    deploy: "workspace-write",
    reflect: "read-only",
    observe: "read-only",
    full: "danger-full-access",
  });
});

/** Each with the narrowest built-in envelope that holds it. */
const CEILINGS = {
  explore: "edit",
  plan: "explore",
  edit: "full",
  test: "edit",
  review: "explore",
  deploy: "full",
  reflect: "explore",
  observe: "reflect",
  full: "full",
};

test("E3: every envelope of the registry has a ceiling that it is held to", () => {
  expect(Object.keys(CEILINGS)).toEqual([...BUILT_IN_ENVELOPES.keys()]);
});

test.each(Object.entries(CEILINGS))("E3: %s is within %s in every dimension, whatever surrounds it", (id, ceiling) => {
  for (const approval of ["never", "on-request", "untrusted"] as const) {
    for (const networkAccess of [false, true]) {
      for (const isThere of [false, true]) {
        const more = {
          approval,
          networkAccess,
          isWatched: isThere,
          hasClientTools: isThere,
          isForTask: isThere,
          search: isThere ? ("always" as const) : undefined,
          mcpServers: isThere ? [McpServerConfig.parse({ name: "wiki", url: "https://wiki.test/mcp" })] : [],
        };
        expect(withinCeiling(resolved(id, more), resolved(ceiling, more))).toBeUndefined();
      }
    }
  }
});

test("edges: deploy is asked for and guarded, full is entered by users alone, and a model asks before it may do more", () => {
  for (const { id, exits } of BUILT_IN_ENVELOPES.values()) {
    for (const { to, by, approval, guards = [] } of exits) {
      if (to === "deploy") expect([approval, guards.length > 0]).toEqual(["ask", true]);
      if (to === "full") expect(by).toEqual(["user"]);
      if (!by.includes("model") || approval === "ask") continue;
      const more = { approval: "untrusted" } as const;
      expect([id, to, withinCeiling(resolved(to, more), resolved(id, more))]).toEqual([id, to, undefined]);
    }
  }
});

test("E6: the hash of an envelope follows its content and not the order of keys", () => {
  const edit = resolved("edit");
  const turned = Envelope.parse(Object.fromEntries(Object.entries(edit).toReversed()));
  expect(envelopeHash(turned)).toBe(envelopeHash(edit));
  expect(envelopeHash({ ...edit, limits: { calls: 1 } })).not.toBe(envelopeHash(edit));
});
