import { expect, test } from "vitest";
import { examineCompared } from "../evidence/examine.ts";
import type { Entry, Facts } from "./facts.ts";
import { collectFindings } from "./findings.ts";
import { createReplay } from "./replay.ts";

const spec = (id: string, writeRoots: readonly string[]): Facts => ({
  id,
  tools: [],
  effects: [],
  writeRoots,
  masked: [],
  network: "none",
  sandbox: "required",
  approval: "never",
});

/** A thread with these events, in order. */
function look(events: readonly (readonly [type: string, body: Facts])[]) {
  const replay = createReplay();
  const first = ["thread.created", { workspace: "/w" }] as const;
  [first, ...events].forEach(([type, body], at) => {
    const entry: Entry = { stream: "t", version: at + 1, at, author: "system", type, body };
    replay.take(entry);
  });
  const { compared } = replay.end();
  const { report, kept } = collectFindings();
  const sum = examineCompared(compared, report);
  return {
    ...sum,
    findings: kept.map(({ code, weight, version, message }) => `${version} ${weight} ${code} ${message}`),
  };
}

const started = (writeRoots: readonly string[]) => ["turn.started", { envelope: spec("e", writeRoots) }] as const;
const compared = (body: Facts) => ["files.compared", { folder: "/w", changed: [], ...body }] as const;
const changed = (...paths: readonly string[]) => ({ changed: paths.map((path) => ({ path, change: "changed" })) });

test("Verify: changed_meanwhile, not_examined: what a turn has compared is judged by what its envelope on record writes", () => {
  expect(
    look([
      started([]),
      compared({ files: 3 }),
      started(["/w/build"]),
      compared({ files: 4, ...changed("/w/a", "/w/build/out", "/w/builder"), more: 2, notExamined: "time" }),
    ]),
  ).toEqual({
    files: 7,
    examined: 2,
    findings: [
      "5 warning changed_meanwhile /w/a changed in a turn whose envelope does not write it",
      "5 warning changed_meanwhile /w/builder changed in a turn whose envelope does not write it",
      "5 warning changed_meanwhile 2 more files changed in the same turn",
      "5 warning not_examined not all files were looked at: it would have taken too long",
    ],
  });
});

test("what a hop has allowed to be written explains it until the next envelope is entered", () => {
  const hop = ["hop.taken", { to: spec("e", ["/w/docs"]) }] as const;
  const entered = ["envelope.entered", { envelope: spec("f", []) }] as const;
  expect(look([started([]), hop, compared({ files: 1, ...changed("/w/docs/a") })]).findings).toEqual([]);
  expect(look([started([]), hop, entered, compared({ files: 1, ...changed("/w/docs/a") })]).findings).toHaveLength(1);
});

test("a comparison that looked at nothing has examined nothing", () => {
  expect(look([started([]), compared({ files: 0, notExamined: "unreadable" })])).toMatchObject({
    files: 0,
    examined: 0,
  });
  expect(look([started([])])).toEqual({ files: 0, examined: 0, findings: [] });
});
