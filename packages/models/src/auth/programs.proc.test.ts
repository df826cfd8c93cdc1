import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { apiKey, openAuthHome } from "../../test/auth-home.ts";
import { openAccounts } from "./accounts.ts";
import { keyringVault } from "./keyring.ts";
import { openCredentialStore } from "./store.ts";
import { CANARY } from "./testing.ts";
import { vendorStatus } from "./vendor-status.ts";

/** A program of this name that runs these lines of sh. */
async function program(root: string, name: string, lines: string): Promise<void> {
  const file = path.join(root, "bin", name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${lines}\n`);
  await chmod(file, 0o755);
}

/** Keeps one secret in a file, and writes down how it was called and what it could see. */
const SECRET_TOOL = `
echo "$@" >> "$HOME/calls"
env >> "$HOME/seen"
case "$1" in
  store) cat > "$HOME/secret" ;;
  lookup) [ -f "$HOME/secret" ] || exit 1; cat "$HOME/secret" ;;
esac`;

test("O14: the keyring keeps the same document behind the same interface, out of files and arguments", async () => {
  await using at = await openAuthHome();
  await program(at.root, "secret-tool", SECRET_TOOL);
  const env = { PATH: `${path.join(at.root, "bin")}:/usr/bin:/bin`, HOME: at.root, OPENAI_API_KEY: CANARY };
  const store = openCredentialStore({ home: at.home, vault: keyringVault(at.home, env) });
  const key = { owner: "local", provider: "openai", profile: "default" };
  expect(await store.get(key)).toBeUndefined();
  await store.change(key, () => apiKey("openai"));
  expect(await store.get(key)).toEqual(apiKey("openai"));
  expect(await readdir(at.home)).toEqual(["credentials.lock"]);
  expect(await readFile(path.join(at.root, "calls"), "utf8")).not.toContain(CANARY);
  expect(await readFile(path.join(at.root, "seen"), "utf8")).not.toContain(CANARY);
  await using accounts = openAccounts({
    home: at.home,
    env: { ...env, OPENAI_API_KEY: "", HEDDLE_CREDENTIALS: "keyring" },
    configs: [],
  });
  expect(await accounts.status({ provider: "openai" })).toMatchObject({ isLoggedIn: true, source: "store" });
});

test("O14: a keyring that is not there is an error, and no file takes its place", async () => {
  await using at = await openAuthHome();
  const env = { PATH: path.join(at.root, "nowhere"), HOME: at.root, HEDDLE_CREDENTIALS: "keyring" };
  await using accounts = openAccounts({ home: at.home, env, configs: [] });
  await expect(accounts.saveKey({ provider: "openai" }, "k")).rejects.toMatchObject({ code: "store.failed" });
  expect(await readdir(at.home)).toEqual(["credentials.lock"]);
});

test("O15: the vendors' programs are asked, not read, and not for long", async () => {
  await using at = await openAuthHome();
  const env = { PATH: `${path.join(at.root, "bin")}:/usr/bin:/bin`, HOME: at.root, ANTHROPIC_API_KEY: CANARY };
  await program(at.root, "codex", `env > "$HOME/seen"; echo "Logged in with sk-${CANARY}"; exit 0`);
  await program(at.root, "claude", "echo no; exit 1");
  await program(at.root, "copilot", "echo 1.0");
  await using accounts = openAccounts({ home: at.home, env: { ...env, CODEX_HOME: at.root }, configs: [] });
  const listed = (await accounts.list({ programs: true })).filter(({ kind }) => kind === "runner");
  expect(listed.map(({ provider, isLoggedIn, problem }) => [provider, isLoggedIn, problem])).toEqual([
    ["codex-cli", true, "loggedIn"],
    ["claude-code", false, "loggedOut"],
    ["github-copilot", false, "installed"],
  ]);
  expect(JSON.stringify(listed)).not.toContain(CANARY);
  expect(await readFile(path.join(at.root, "seen"), "utf8")).not.toContain(CANARY);
  const missing = { id: "x", program: "no-such-program", loginHint: "" };
  expect(await vendorStatus(missing, env)).toEqual({ id: "x", state: "missing" });
});

test("O15: a program that hangs is ended with everything it started", async () => {
  await using at = await openAuthHome();
  const env = { PATH: `${path.join(at.root, "bin")}:/usr/bin:/bin`, HOME: at.root };
  await program(at.root, "codex", `sleep 600 & echo $! > "$HOME/pid"; sleep 600`);
  const startedAt = performance.now();
  const hanging = { id: "codex-cli", program: "codex", statusArgs: ["login", "status"], loginHint: "" };
  expect(await vendorStatus(hanging, env, 500)).toEqual({ id: "codex-cli", state: "noAnswer" });
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  const pid = Number(await readFile(path.join(at.root, "pid"), "utf8"));
  await expect.poll(() => isRunning(pid)).toBe(false);
});

async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && !stat.includes(") Z ");
}
