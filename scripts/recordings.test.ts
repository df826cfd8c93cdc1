/** What real programs were recorded to say holds nothing of the machines it was recorded on. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { blanker } from "../conformance/runners/blanked.ts";

const RECORDED = path.join(import.meta.dirname, "../packages/agent/test/recorded");

/** Homes of people, and folders of checkouts, also as the names of folders that programs make of paths. */
const OF_MACHINE =
  /\/(?:root|Users|work|mnt|home\/(?!dev\b)\w+)\/|-(?:Users|work|home-(?!dev\b)\w+)--?\w|-root-[-\w]|%2F(?:root|Users|work)\b/;

test("no recording names a place of the machine that it was made on", () => {
  const files = readdirSync(RECORDED);
  expect(files).toContain("suite-claude.jsonl");
  const found = files.flatMap((file) => {
    const [place] = OF_MACHINE.exec(readFileSync(path.join(RECORDED, file), "utf8")) ?? [];
    return place === undefined ? [] : [`${file}: ${place}`];
  });
  expect(found).toEqual([]);
});

test("places are blanked in every form, the inner ones first", () => {
  const blank = blanker(
    [
      ["/root/.cache/world-1/ws-1", "/home/dev/project"],
      ["/root/.cache/world-1", "/home/dev"],
    ],
    [
      ["/checkouts/a/conformance/node_modules", "/home/dev/programs"],
      ["/root", "/home/dev"],
    ],
  );
  expect(blank("cwd /root/.cache/world-1/ws-1/x, /root/.cache/world-1/.qwen")).toBe(
    "cwd /home/dev/project/x, /home/dev/.qwen",
  );
  expect(blank("/projects/-root--cache-world-1-ws-1/memory")).toBe("/projects/-home-dev-project/memory");
  expect(blank("file=%2Froot%2F.cache%2Fworld-1%2Fa&b=/root/b")).toBe("file=%2Fhome%2Fdev%2Fa&b=/home/dev/b");
  expect(blank("/checkouts/a/conformance/node_modules/x/y.js of a project-root")).toBe(
    "/home/dev/programs/x/y.js of a project-root",
  );
});
