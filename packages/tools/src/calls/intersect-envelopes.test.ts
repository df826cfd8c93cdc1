import type { Envelope } from "@heddle/protocol";
import { expect, test } from "vitest";
import { BUILT_IN_ENVELOPES } from "../envelopes/built-in.ts";
import { resolveEnvelope } from "../envelopes/resolve.ts";
import { envelopeFor, envelopeHash } from "./envelopes.ts";
import { intersectEnvelopes } from "./intersect-envelopes.ts";
import { withinCeiling } from "./within-ceiling.ts";

const base = {
  workspace: "/work",
  writableRoots: [],
  networkAccess: false,
  approval: "never" as const,
  masked: ["/home/x/.heddle"],
};
const explore = envelopeFor({ ...base, mode: "read-only" });
const edit = envelopeFor({ ...base, mode: "workspace-write" });
const full = envelopeFor({ ...base, mode: "danger-full-access" });
const envelope = (more: Partial<Envelope>): Envelope => ({ ...edit, ...more });

const allowed = ({ exits: _exits, ...rest }: Envelope): Omit<Envelope, "exits"> => rest;

test("S7: of two built-in envelopes the narrower one is left, whichever comes first", () => {
  expect(allowed(intersectEnvelopes(full, explore))).toEqual({ ...allowed(explore), id: "full" });
  expect(allowed(intersectEnvelopes(explore, full))).toEqual(allowed(explore));
  expect(allowed(intersectEnvelopes(full, edit))).toEqual({ ...allowed(edit), id: "full" });
  expect(intersectEnvelopes(edit, explore)).toMatchObject({ writeRoots: [], effects: ["read", "exec"] });
});

test("S7: whichever two built-in envelopes there are, nothing of their intersection is above either", () => {
  const all = [...BUILT_IN_ENVELOPES.values()].map((spec) =>
    resolveEnvelope(spec, { ...base, mayHop: true, mayStartThreads: true, isWatched: true }),
  );
  const above = all.flatMap((own) =>
    all.flatMap((other) => {
      const common = intersectEnvelopes(own, other);
      return [own, other].map((ceiling) => withinCeiling(common, ceiling));
    }),
  );
  expect(above.filter((excess) => excess !== undefined)).toEqual([]);
});

test("S7: a folder that one envelope masks is not shown because the other one writes there", () => {
  const masking = envelope({ writeRoots: ["/"], masked: ["/secret"] });
  const writing = envelope({ writeRoots: ["/secret/own", "/work"], masked: [] });
  for (const common of [intersectEnvelopes(masking, writing), intersectEnvelopes(writing, masking)]) {
    expect(common.writeRoots).toEqual(["/work"]);
    expect([withinCeiling(common, masking), withinCeiling(common, writing)]).toEqual([undefined, undefined]);
  }
  const both = envelope({ writeRoots: ["/secret/own"], masked: ["/secret"] });
  expect(intersectEnvelopes(both, both).writeRoots).toEqual(["/secret/own"]);
});

test("S7: an intersection taken again stays as it is", () => {
  const odd = envelope({
    tools: ["read", "mcp.a.*", "mcp.b.one"],
    readRoots: ["/usr", "/work"],
    writeRoots: ["/work/src"],
    network: ["*.example.org", "one.test:8080"],
    limits: { calls: 5 },
  });
  const other = envelope({
    tools: ["read", "mcp.a.two", "mcp.b.*"],
    readRoots: ["/usr/share", "/etc"],
    network: ["www.example.org", "one.test"],
    limits: { calls: 9, processes: 64 },
  });
  const once = intersectEnvelopes(odd, other);
  expect(once).toMatchObject({
    tools: ["read", "mcp.b.one", "mcp.a.two"],
    readRoots: ["/usr/share", "/work"],
    writeRoots: ["/work/src"],
    network: ["www.example.org"],
    limits: { calls: 5, processes: 64 },
  });
  expect(envelopeHash(intersectEnvelopes(once, other))).toBe(envelopeHash(once));
  expect(envelopeHash(intersectEnvelopes(once, odd))).toBe(envelopeHash(once));
});

test.each([
  [["/work"], ["/work/src", "/other"], ["/work/src"]],
  [["/work/src", "/work/docs"], ["/work"], ["/work/src", "/work/docs"]],
  [["/work/src"], ["/work/srcx"], []],
  [["/"], ["/work"], ["/work"]],
])("S7: only folders inside both may be written: %j and %j", (own, other, common) => {
  expect(intersectEnvelopes(envelope({ writeRoots: own }), envelope({ writeRoots: other })).writeRoots).toEqual(common);
});

test.each<[Envelope["network"], Envelope["network"], Envelope["network"]]>([
  ["all", "none", "none"],
  ["all", ["a.test"], ["a.test"]],
  [["a.test"], ["b.test"], "none"],
  [["a.test:443"], ["a.test"], ["a.test:443"]],
  [["a.test:8443"], ["a.test"], "none"],
  [["*.a.test"], ["x.a.test", "*.y.a.test"], ["x.a.test", "*.y.a.test"]],
  [["a.test"], ["*.a.test"], "none"],
  [["*.a.test"], ["*.a.test"], ["*.a.test"]],
  [["[::1]:80"], ["[::1]"], ["[::1]:80"]],
])("S7: the network is the narrower of both: %j and %j", (own, other, common) => {
  expect(intersectEnvelopes(envelope({ network: own }), envelope({ network: other })).network).toEqual(common);
  const back = intersectEnvelopes(envelope({ network: other }), envelope({ network: own })).network;
  expect([back].flat().toSorted()).toEqual([common].flat().toSorted());
});

test("S7: what is masked in either is masked, a sandbox of either is required, and the stricter one asks", () => {
  const own = envelope({ masked: ["/a"], sandbox: "off", approval: "never", manifest: true });
  const other = envelope({ masked: ["/b"], sandbox: "required", approval: "untrusted" });
  expect(intersectEnvelopes(own, other)).toMatchObject({
    masked: ["/a", "/b"],
    sandbox: "required",
    approval: "untrusted",
    manifest: true,
  });
});

test("S7: of the ways to other envelopes only those are left that both have in the same words", () => {
  const edge = { to: "test", by: ["model" as const], approval: "auto" as const };
  const own = envelope({ exits: [edge, { ...edge, to: "deploy" }] });
  expect(
    intersectEnvelopes(own, envelope({ exits: [edge, { ...edge, to: "deploy", approval: "ask" }] })).exits,
  ).toEqual([edge]);
  expect(intersectEnvelopes(own, envelope({})).exits).toEqual([]);
});
