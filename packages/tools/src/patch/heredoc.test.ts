import { expect, test } from "vitest";
import { typedPatch } from "./heredoc.ts";

const PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch";

test.each([
  ["a quoted heredoc", `apply_patch <<'EOF'\n${PATCH}\nEOF`, { patch: PATCH }],
  ["a double-quoted heredoc", `apply_patch <<"PATCH"\n${PATCH}\nPATCH\n`, { patch: PATCH }],
  ["a bare heredoc", `apply_patch <<EOF\n${PATCH}\nEOF`, { patch: PATCH }],
  ["the other spelling", `applypatch <<'EOF'\n${PATCH}\nEOF`, { patch: PATCH }],
  ["a folder first", `cd sub/dir && apply_patch <<'EOF'\n${PATCH}\nEOF`, { patch: PATCH, workdir: "sub/dir" }],
  ["a quoted folder", `cd "my dir" && apply_patch <<'EOF'\n${PATCH}\nEOF`, { patch: PATCH, workdir: "my dir" }],
  ["one argument", `apply_patch '${PATCH}'`, { patch: PATCH }],
])("%s is taken as a patch", (_name, command, expected) => {
  expect(typedPatch(command)).toEqual(expected);
});

test.each([
  ["something after it", `apply_patch <<'EOF'\n${PATCH}\nEOF\nrm -rf x`],
  ["something before it", `echo hi; apply_patch <<'EOF'\n${PATCH}\nEOF`],
  ["a folder from a variable", `cd $HOME && apply_patch <<'EOF'\n${PATCH}\nEOF`],
  ["another program", `cat <<'EOF'\n${PATCH}\nEOF`],
  ["a search for the word", "grep -rn apply_patch src"],
])("a command with %s stays a command", (_name, command) => {
  expect(typedPatch(command)).toBeUndefined();
});

test("a long command that looks alike is judged at once", () => {
  const startedAt = performance.now();
  expect(typedPatch(`apply_patch <<'EOF'\n${"EOF ".repeat(200_000)}`)).toBeUndefined();
  expect(performance.now() - startedAt).toBeLessThan(1000);
});
