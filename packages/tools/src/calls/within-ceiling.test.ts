import type { Envelope } from "@heddle/protocol";
import { expect, test } from "vitest";
import { withinCeiling } from "./within-ceiling.ts";

const LIMITS = {
  calls: 10,
  bytesWritten: 100,
  wallMs: 1000,
  childThreads: 1,
  hopsPerTurn: 2,
  processes: 50,
  memoryBytes: 9,
  cpuSec: 60,
};
const ceiling: Envelope = {
  id: "narrow",
  tools: ["read", "bash", "mcp.wiki.*"],
  effects: ["read", "exec"],
  readRoots: ["/w", "/usr"],
  writeRoots: ["/w/out", "/h/secret/open"],
  masked: ["/w/keys", "/h/secret"],
  network: ["a.test", "*.b.test:8443"],
  sandbox: "required",
  approval: "on-request",
  limits: LIMITS,
};

test("an envelope is within itself, and whatever is less is within it", () => {
  expect(withinCeiling(ceiling, ceiling)).toBeUndefined();
  const less: Envelope = {
    id: "less",
    tools: ["read", "mcp.wiki.search", "request_permissions"],
    effects: ["read"],
    readRoots: ["/w/src", "/w/out/deep"],
    writeRoots: [],
    masked: ["/w/keys", "/h"],
    network: ["c.b.test:8443"],
    sandbox: "required",
    approval: "untrusted",
    limits: { ...ceiling.limits, calls: 1, bytesWritten: 0 },
  };
  expect(withinCeiling(less, ceiling)).toBeUndefined();
});

test.each<readonly [string, Partial<Envelope>, string]>([
  ["tools", { tools: ["read", "write"] }, "the tool write"],
  ["tools of a server", { tools: ["mcp.*"] }, "the tool mcp.*"],
  ["effects", { effects: ["read", "spawn"] }, 'the effect "spawn"'],
  ["read roots", { readRoots: ["/w", "/etc"] }, "reading /etc"],
  ["no read roots", { readRoots: undefined }, "reading /"],
  ["write roots", { writeRoots: ["/w/outer"] }, "writing to /w/outer"],
  ["write roots above", { writeRoots: ["/w"] }, "writing to /w"],
  ["masked paths", { masked: ["/w/keys"] }, "seeing /h/secret"],
  ["part of a masked path", { masked: ["/w/keys", "/h/secret/a"] }, "seeing /h/secret"],
  ["network", { network: "all" }, "the network"],
  ["hosts", { network: ["a.test", "c.test"] }, "the network of a.test, c.test"],
  ["ports", { network: ["a.test:22"] }, "the network of a.test:22"],
  ["sandbox", { sandbox: "off" }, "running outside the sandbox"],
  ["approval", { approval: "never" }, 'running without the questions of "on-request"'],
  ["a limit", { limits: { ...ceiling.limits, calls: 11 } }, "11 for calls (at most 10)"],
])("an excess in %s is found", (_dimension, { ...more }, found) => {
  const { readRoots, ...rest } = { ...ceiling, ...more };
  expect(withinCeiling({ ...rest, ...(readRoots === undefined ? {} : { readRoots }) }, ceiling)).toBe(found);
});

test("an excess in each limit is found, given too high or not at all", () => {
  for (const [key, max] of Object.entries<number>(LIMITS)) {
    const higher = { ...ceiling, limits: { ...ceiling.limits, [key]: max + 1 } };
    expect(withinCeiling(higher, ceiling)).toBe(`${max + 1} for ${key} (at most ${max})`);
    const { [key]: _left, ...others } = Object.fromEntries(Object.entries(LIMITS));
    expect(withinCeiling({ ...ceiling, limits: others }, ceiling)).toBe(`no limit for ${key} (at most ${max})`);
  }
});

test("a folder that is writable inside a masked one is seen only as far as the ceiling shows it", () => {
  const wide: Envelope = { ...ceiling, writeRoots: ["/"], masked: ["/h/secret"] };
  expect(withinCeiling({ ...wide, writeRoots: ["/h/secret/open"] }, wide)).toBe("seeing /h/secret/open");
  expect(withinCeiling({ ...wide, writeRoots: ["/w"] }, wide)).toBeUndefined();
});

test("any mix of dimensions with one excess is found", () => {
  const excesses: readonly Partial<Envelope>[] = [
    { tools: [...ceiling.tools, "edit"] },
    { effects: ["read", "exec", "write"] },
    { readRoots: ["/"] },
    { writeRoots: ["/w"] },
    { masked: [] },
    { network: "all" },
    { sandbox: "off" },
    { approval: "never" },
    { limits: {} },
  ];
  for (let mix = 1; mix < 2 ** excesses.length; mix += 1) {
    const chosen = excesses.filter((_, index) => (mix & (2 ** index)) > 0);
    expect(withinCeiling(Object.assign({}, ceiling, ...chosen), ceiling)).toBeDefined();
  }
});
