import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CODES } from "./findings.ts";

test("every code of a verification has a test that is named after it", () => {
  const packages = join(import.meta.dirname, "../../..");
  const files = globSync(["journal/src/{blobs,evidence,replay}/*.test.ts", "cli/src/{commands,verify}/*.test.ts"], {
    cwd: packages,
  });
  const named = files.flatMap((file) => {
    const text = readFileSync(join(packages, file), "utf8");
    return [...text.matchAll(/Verify: ([a-z_, ]+)/g)].flatMap(([, codes = ""]) => codes.split(", "));
  });
  expect(Object.keys(CODES).filter((code) => !named.includes(code))).toEqual([]);
});
