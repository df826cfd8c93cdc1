import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { apiKey, CODEX_KEY, login, openAuthHome } from "../../test/auth-home.ts";
import { openCredentialStore } from "./store.ts";
import { startTestIssuer } from "./testing.ts";

const CHILD = path.join(inject("children"), "store-in-child.mjs");
const KEY = { owner: "local", provider: "openai", profile: "default" };
const KILLS = process.env["HEDDLE_E2E_FULL"] === "1" ? 200 : 40;

type Child = ChildProcessByStdio<Writable, Readable, null>;

function startChild(args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  return spawn(process.execPath, [CHILD, ...args], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
}

async function isReady(child: Child): Promise<void> {
  await once(child.stdout, "data");
}

async function kill(child: Child): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

test(
  `O2: a writer killed at ${KILLS} random moments (200 with HEDDLE_E2E_FULL=1) leaves a whole document every time`,
  { timeout: 240_000 },
  async () => {
    await using at = await openAuthHome();
    const store = openCredentialStore({ home: at.home });
    const different = new Set<string>();
    // Started ahead, told to write one by one: the one that is killed is the one that writes.
    const startAhead = (): Child => startChild(["write", at.home]);
    const ahead = Array.from({ length: 4 }, startAhead);
    for (let number = 0; number < KILLS; number += 1) {
      const child = ahead.shift() ?? startAhead();
      if (number + 4 < KILLS) ahead.push(startAhead());
      child.stdin.end("go\n");
      await isReady(child);
      await pause(Math.random() * 25);
      await kill(child);
      const entry = await store.get(KEY);
      const seen = entry?.type === "apiKey" ? entry.key : "";
      const [first = ""] = seen.split(" ");
      expect(seen).toBe(`${first} `.repeat(20_000).slice(0, 60_000));
      different.add(first);
    }
    expect(different.size).toBeGreaterThan(3);
    await store.change(KEY, () => apiKey("openai"));
    expect((await readdir(at.home)).toSorted()).toEqual(["credentials.json", "credentials.lock"]);
  },
);

test.each([
  ["credentials.before-write", "old"],
  ["credentials.before-rename", "old"],
  ["credentials.after-rename", "new"],
])("O2: killed at %s, the %s document is there", async (failpoint, which) => {
  await using at = await openAuthHome();
  const store = openCredentialStore({ home: at.home });
  await store.change(KEY, () => apiKey("openai", "before"));
  const child = startChild(["write", at.home, "once"], { HEDDLE_FAILPOINT: `${failpoint}=kill` });
  await once(child, "close");
  expect(child.signalCode).toBe("SIGKILL");
  const entry = await store.get(KEY);
  expect(entry?.type === "apiKey" && entry.key === "before").toBe(which === "old");
});

test("O3: a holder that is killed holds nobody up", async () => {
  await using at = await openAuthHome();
  const child = startChild(["hold", at.home]);
  await isReady(child);
  const store = openCredentialStore({ home: at.home, lockWaitMs: 100 });
  await expect(store.change(KEY, () => undefined)).rejects.toMatchObject({ code: "store.busy" });
  await kill(child);
  await store.change(KEY, () => apiKey("openai"));
  expect(await store.get(KEY)).toBeDefined();
});

test("O3: eight processes with one expired login renew it once, and all use the same token", async () => {
  await using issuer = await startTestIssuer();
  await using at = await openAuthHome();
  const store = openCredentialStore({ home: at.home });
  await store.change(CODEX_KEY, () => login(issuer, -60));
  const children = Array.from({ length: 8 }, () => startChild(["use", at.home, issuer.url]));
  await Promise.all(children.map(isReady));
  const outputs = children.map((child) => text(child.stdout));
  for (const child of children) child.stdin.end("go\n");
  const tokens = new Set((await Promise.all(outputs)).map((output) => output.trim()));
  expect(issuer.count("/oauth/token")).toBe(1);
  expect(tokens.size).toBe(1);
  const kept = await store.get(CODEX_KEY);
  expect(kept).toMatchObject({ type: "oauth", health: "ok" });
  expect(kept?.type === "oauth" ? tokens.has(kept.accessToken) : false).toBe(true);
});
