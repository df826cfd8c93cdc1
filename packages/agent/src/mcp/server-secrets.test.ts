import { expect, test } from "vitest";
import { serverSecrets } from "./server-secrets.ts";

const server = (env: Readonly<Record<string, string>>) =>
  ({ name: "s", command: "c", args: [], env }) as unknown as Parameters<typeof serverSecrets>[0];

test.each([
  ["hunter2hunter2", true],
  ["correct-horse-battery-staple", true],
  ["kJhGfDsAqWeRtYuI", true],
  ["0f3e6a91c2d4b587", true],
  ["dGhpcyBpcyBhIGtleQ==", true],
  ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", true],
  ["https://example.com/hook?k=abcdefgh", true],
  ["server=db;password=letmein99", true],
  ["/srv/data/models", false],
  ["~/notes/today.md", false],
  ["./node_modules/.bin", false],
  ["https://api.example.com/v1", false],
  ["production", false],
  ["us-east-1", false],
  ["en_US.UTF-8", false],
  ["application/json", false],
  ["2026-11-18", false],
  ["127.0.0.1:8080", false],
  ["1234567890", false],
])("%s: a secret is it under any name: %s", (value, isSecret) => {
  expect(serverSecrets(server({ LOGIN: value }))).toEqual(isSecret ? [value] : []);
  // A name that tells decides alone.
  expect(serverSecrets(server({ API_KEY: value }))).toEqual([value]);
});

test("neither a scheme before a value nor an address around it hides it", () => {
  const address = "postgres://me:pass-word-12345@db.example.com/x";
  expect(serverSecrets(server({ DATABASE: address }))).toEqual([address, "pass-word-12345"]);
  expect(serverSecrets(server({ X_SIGNED: "Bearer 0f3e6a91c2d4b587" }))).toEqual([
    "Bearer 0f3e6a91c2d4b587",
    "0f3e6a91c2d4b587",
  ]);
});
