import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loginAddress } from "./login-address.ts";

/** A home whose server, it says, is `pid`, and answers as given. */
async function homeOf(pid: number, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const home = await mkdtemp(join(tmpdir(), "heddle-login-"));
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = server.address();
  const address = `http://127.0.0.1:${typeof at === "object" ? at?.port : ""}`;
  await writeFile(join(home, "serve.token"), "owner-token-of-this-test-0123456789abcdef\n", { mode: 0o600 });
  await writeFile(join(home, "serve.json"), JSON.stringify({ addresses: [address], pid }));
  const end = async (): Promise<void> => {
    server.close();
    await rm(home, { recursive: true, force: true });
  };
  return { home, [Symbol.asyncDispose]: end };
}

test("whoever listens at the address of a server that crashed is not shown the owner's token", async () => {
  const shown: (string | undefined)[] = [];
  // More than any pid there can be.
  await using other = await homeOf(2 ** 30, ({ headers }, response) => {
    shown.push(headers.authorization);
    response.end();
  });
  await expect(loginAddress(other.home)).rejects.toThrow("start one with: heddle serve");
  expect(shown).toEqual([]);
});

test("an answer that is no whole JSON is one clear line", async () => {
  await using cut = await homeOf(process.pid, ({ method }, response) => {
    response.setHeader("content-type", "application/json");
    response.end(method === "POST" ? '{"path": "/#co' : "");
  });
  await expect(loginAddress(cut.home)).rejects.toThrow("gave no code for logging in (HTTP 200)");
});
