import { hash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { canonical, genesisText, linkText } from "@heddle/protocol/chain-link";
import { CheckpointList, type EventPage, type LoginAnswer, type LoginCode } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import { openHttpWorld } from "../../test/http-world.ts";
import { follow } from "../../test/sse-client.ts";
import { openTokenBook } from "./tokens.ts";

const sha256 = (text: string): string => hash("sha256", text);

test("whoever has the events of a stream can check its chain, and find the signed heads in it", async () => {
  await using world = await openHttpWorld();
  const taskId = await world.newTask();
  await world.ask(`/api/tasks/${taskId}/pause`, { method: "POST", body: {} });
  const { data } = (await world.ask(`/api/tasks/${taskId}/log`)).json as EventPage;
  expect(data.length).toBeGreaterThan(1);
  let prevHash = sha256(genesisText(taskId));
  for (const event of data) {
    expect(event.prevHash).toBe(prevHash);
    const { id, seq, at, author, body } = event;
    const bodyHash = sha256(canonical(body));
    const link = { id, stream: taskId, version: seq, at, author, type: body.type, v: body.v, bodyHash, prevHash };
    prevHash = sha256(linkText(link));
    expect(event.hash).toBe(prevHash);
  }
  // Written a moment after the event.
  const signed = async (path: string) =>
    CheckpointList.parse((await world.ask(`/api/${path}/checkpoints`)).json).data.map(({ seq, hash: head }) => [
      seq,
      head,
    ]);
  await expect.poll(() => signed(`tasks/${taskId}`)).toEqual([[1, data[0]?.hash]]);
  const threadId = await world.newThread();
  await expect.poll(async () => (await signed(`threads/${threadId}`)).map(([seq]) => seq)).toEqual([1]);
});

test("a verification that takes too long is ended, with the command that has no limit", async () => {
  await using world = await openHttpWorld({ verifyMs: 0 });
  const threadId = await world.newThread();
  await world.append(threadId, 3_000);
  const answer = await world.ask("/api/verify", { method: "POST", body: { subject: threadId } });
  expect(answer).toMatchObject({ status: 503, json: { error: { code: "evidence.timeout" } } });
  expect(answer.text).toContain(`heddle verify ${threadId}`);
});

test("without the file of the owner's token neither it nor a browser of the owner comes in any more", async () => {
  const logs: string[] = [];
  await using world = await openHttpWorld({ heartbeatMs: 50 });
  const file = join(world.home, "serve.token");
  await writeFile(file, "owner-token-in-a-file-0123456789abcdefgh\n", { mode: 0o600 });
  const token = "owner-token-in-a-file-0123456789abcdefgh";
  const tokens = openTokenBook(world.home, { token, file }, (line) => logs.push(line));
  await using other = await openHttpWorld({ home: world.home, tokens, heartbeatMs: 50 });
  const status = async (shown: string): Promise<number> => (await other.ask("/api/server", { token: shown })).status;
  const code = (await other.ask("/api/login/codes", { method: "POST", token, body: {} })).json as LoginCode;
  const login = (await other.ask("/api/login", { method: "POST", body: { code: code.code } })).json as LoginAnswer;
  expect([await status(token), await status(login.token)]).toEqual([200, 200]);
  using stream = await follow(`${other.url}/api/events`, login.token);
  await stream.waitFor(({ event }) => event === "caughtUp");
  await rm(file);
  expect((await stream.waitFor(({ event }) => event === "end")).data).toMatchObject({ reason: "revoked" });
  await expect.poll(async () => [await status(token), await status(login.token)]).toEqual([401, 401]);
  // A token that is made anew does not bring them back.
  await writeFile(file, "another-token-0123456789abcdefghijklmnop\n", { mode: 0o600 });
  expect(
    (await openTokenBook(
      world.home,
      { token: "another-token-0123456789abcdefghijklmnop", file },
      () => undefined,
    ).principalOf(login.token)) ?? "nobody",
  ).toBe("nobody");
  expect(logs).toEqual([]);
});
