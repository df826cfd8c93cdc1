import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";

const PROGRAM = path.join(import.meta.dirname, "../../test/loaded-in-child.ts");

test("12.19: a request with a key loads nothing that logs in, signs, or reads another framing", async () => {
  await using server = await startModelServer({ script: [{ text: "hi" }] });
  const args = ["--conditions=heddle-source", PROGRAM, `${server.url}/v1`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const files = stdout.split("\n").map((url) => url.replace(/.*\/packages\/models\/src\//, ""));
  expect(files).toContain("wire/anthropic.ts");
  // A name, which the catalog's lists are kept by, and what must never be stored: the values of the file of logins.
  const known = ["auth/default-account.ts", "auth/stored-secrets.ts", "auth/credentials-file.ts"];
  const logins = files.filter((file) => !known.includes(file));
  expect(logins.filter((file) => /^auth\/|accounts|hosting|aws/.test(file))).toEqual([]);
});
