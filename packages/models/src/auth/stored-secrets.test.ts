import { mkdir, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openAuthHome } from "../../test/auth-home.ts";
import { documentText, secretsOf, type Credential } from "./credential.ts";
import { storedSecrets } from "./stored-secrets.ts";

const AT = "2026-01-02T03:04:05.000Z";
const common = { v: 1, owner: "local", profile: "default", savedAt: AT, health: "ok" } as const;
const times = { expiresAt: AT, lastRefresh: AT };
const url = "https://issuer.example/";

const ENTRIES: readonly Credential[] = [
  { ...common, type: "apiKey", provider: "openai", origin: url, key: "stored-1" },
  {
    ...common,
    ...times,
    type: "oauth",
    provider: "codex",
    issuer: url,
    accessToken: "stored-2",
    refreshToken: "stored-3",
    idToken: "stored-4",
    email: "a@b.example",
  },
  {
    ...common,
    ...times,
    type: "copilot",
    provider: "copilot",
    issuer: url,
    refreshToken: "stored-5",
    accessToken: "stored-6",
    apiUrl: url,
  },
  {
    ...common,
    ...times,
    type: "mcpOauth",
    provider: "mcp",
    server: "docs",
    url,
    authority: { issuer: url, tokenEndpoint: url, authMethods: ["none"], clientId: "client", clientSecret: "stored-7" },
    accessToken: "stored-8",
    refreshToken: "stored-9",
  },
];

test("12.12: every secret of every kind of login is known, and nothing else of it", async () => {
  await using at = await openAuthHome();
  expect(storedSecrets(at.home)).toEqual([]);
  await mkdir(at.home, { mode: 0o700 });
  await writeFile(at.file, documentText(ENTRIES), { mode: 0o600 });
  expect(storedSecrets(at.home).toSorted()).toEqual(ENTRIES.flatMap(secretsOf).toSorted());
  expect(storedSecrets(at.home)).toHaveLength(9);
  await writeFile(at.file, "{ damaged");
  expect(storedSecrets(at.home)).toEqual([]);
});
