import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loginAddress } from "./login-address.ts";

test("whoever listens at the address of a server that crashed is not shown the owner's token", async () => {
  const home = await mkdtemp(join(tmpdir(), "heddle-login-"));
  const shown: (string | undefined)[] = [];
  const other = createServer(({ headers }, response) => {
    shown.push(headers.authorization);
    response.end();
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const at = other.address();
  const address = `http://127.0.0.1:${typeof at === "object" ? at?.port : ""}`;
  await writeFile(join(home, "serve.token"), "owner-token-of-this-test-0123456789abcdef\n", { mode: 0o600 });
  // More than any pid there can be.
  await writeFile(join(home, "serve.json"), JSON.stringify({ addresses: [address], pid: 2 ** 30 }));
  await expect(loginAddress(home)).rejects.toThrow("start one with: heddle serve");
  expect(shown).toEqual([]);
  other.close();
  await rm(home, { recursive: true, force: true });
});
