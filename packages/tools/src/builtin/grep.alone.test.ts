import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, test } from "vitest";
import { openFixture, textOf, type Fixture } from "../../test/fixture.ts";

// Without ripgrep on the path the walk does the work, whatever the host has.
const open = (files: Record<string, string | Uint8Array>): Promise<Fixture> =>
  openFixture({ family: "anthropic", files, sandbox: "none", env: { PATH: "/nonexistent" } });

test("grep finds lines by regular expression, in all files or some", async () => {
  await using fixture = await open({
    "a.ts": "const one = 1;\nconst two = 2;\n",
    "b/c.md": "One and two\n",
    "bin.dat": new Uint8Array([0, 111, 110, 101]),
    "node_modules/x.ts": "one\n",
  });
  const at = (name: string): string => join(fixture.workspace, name);
  expect(textOf(await fixture.call("grep", { pattern: "\\bone\\b" }))).toBe(`${at("a.ts")}:1:const one = 1;`);
  expect(textOf(await fixture.call("grep", { pattern: "ONE", ignore_case: true }))).toBe(
    `${at("a.ts")}:1:const one = 1;\n${at("b/c.md")}:1:One and two`,
  );
  expect(textOf(await fixture.call("grep", { pattern: "two", include: "*.md" }))).toBe(`${at("b/c.md")}:1:One and two`);
  expect(textOf(await fixture.call("grep", { pattern: "two", path: "a.ts" }))).toBe(`${at("a.ts")}:2:const two = 2;`);
  expect(textOf(await fixture.call("grep", { pattern: "three" }))).toBe("No lines match.");
  expect(await fixture.call("grep", { pattern: "(" })).toMatchObject({
    kind: "failed",
    failure: { code: "tool.failed" },
  });
  expect(textOf(await fixture.call("grep", { pattern: "x", path: "missing" }))).toContain("does not exist");
});

test("D10: too many matches are cut with a mark", async () => {
  await using fixture = await open({ "a.txt": "hit\n".repeat(3000) });
  const text = textOf(await fixture.call("grep", { pattern: "hit" }));
  expect(text.endsWith("[only the first 500 matches are shown]")).toBe(true);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(33 * 1024);
});

test("a pattern that never ends is killed after two seconds, and the event loop goes on meanwhile", async () => {
  await using fixture = await open({ "a.txt": `${"a".repeat(40)}!\n` });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const startedAt = performance.now();
  const outcome = await fixture.call("grep", { pattern: "^(a+)+$" });
  delay.disable();
  expect(outcome).toMatchObject({ kind: "failed", failure: { code: "tool.timeout" } });
  expect(performance.now() - startedAt).toBeLessThan(4000);
  expect(delay.percentile(99) / 1e6).toBeLessThan(100);
});

test("a search ends with its turn", async () => {
  await using fixture = await open({ "a.txt": `${"a".repeat(40)}!\n` });
  const startedAt = performance.now();
  const outcome = await fixture.call("grep", { pattern: "^(a+)+$" }, { signal: AbortSignal.timeout(200) });
  expect(outcome).toMatchObject({ kind: "cancelled", item: { status: "interrupted" } });
  expect(performance.now() - startedAt).toBeLessThan(1500);
});

test("ripgrep is used inside the sandbox when the path has it, and its refusal falls back to the walk", async () => {
  // A stand-in that answers like ripgrep: it proves how it is called and from where, on hosts without the real one.
  const script = `#!/bin/sh
for last; do :; done
case "$*" in *broken*) echo 'regex parse error' >&2; exit 2 ;; esac
cat "$last/../home/secret.txt" 2>/dev/null
echo "$last/a.txt:1:$*"
`;
  await using fixture = await openFixture({
    family: "anthropic",
    files: { "bin/rg": script, "a.txt": "broken line\n" },
    env: (workspace) => ({ PATH: `${join(workspace, "bin")}:/usr/bin:/bin` }),
  });
  await chmod(join(fixture.workspace, "bin/rg"), 0o755);
  const text = textOf(await fixture.call("grep", { pattern: "-x", include: "*.txt", ignore_case: true }));
  expect(text).toContain(`${fixture.workspace}/a.txt:1:`);
  expect(text).toContain("--no-config");
  expect(text).not.toContain("a key nobody");
  expect(text).toContain("--ignore-case --glob=*.txt --regexp=-x --");
  expect(textOf(await fixture.call("grep", { pattern: "broken line" }))).toBe(
    `${fixture.workspace}/a.txt:1:broken line`,
  );
});
