import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openHeddle } from "@heddle/agent";
import type { CodexNotification } from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { FanOut } from "../followers/fan-out.ts";
import { LoadedThreads } from "./loaded.ts";
import type { Follower } from "../followers/subscribe.ts";

const NOBODY: Follower = {
  by: "user:owner",
  tell: () => undefined,
  sendDelta: () => undefined,
  ask: () => undefined,
  withdraw: () => undefined,
};

test("a thread that nobody follows is let go after a while, and everyone is told; one that is followed again stays", async () => {
  const root = await mkdtemp(path.join(tmpdir(), "heddle-loaded-"));
  await mkdir(path.join(root, "workspace"));
  await using ends = new AsyncDisposableStack();
  ends.defer(() => rm(root, { recursive: true, force: true }));
  const heddle = ends.use(
    await openHeddle({ home: path.join(root, "home"), providers: [], env: {}, isUnattended: false }),
  );
  const fanOut = ends.use(await FanOut.open({ heddle, log: () => undefined }));
  const told: CodexNotification[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const threads = ends.use(
    new LoadedThreads({
      heddle,
      fanOut: async () => fanOut,
      announce(notification) {
        told.push(notification);
        if (notification.method === "thread/closed") resolve();
      },
      nextRequestId: () => 0,
      contextWindow: () => undefined,
      log: () => undefined,
      idleMs: 100,
    }),
  );
  const workspace = path.join(root, "workspace");
  const load = async (isEphemeral = false): Promise<string> => {
    const threadId = await heddle.as("user:owner").createThread({ workspace, origin: "test" });
    threads.load({ threadId, workspace, isEphemeral });
    (await threads.feed(threadId)).add(NOBODY);
    return threadId;
  };
  const [fleeting, left, back] = [await load(true), await load(), await load()];
  for (const threadId of [fleeting, back, left]) threads.leave(threadId, NOBODY);
  (await threads.feed(back)).add(NOBODY);
  await closed;
  expect(told).toEqual([
    { method: "thread/status/changed", params: { threadId: left, status: { type: "notLoaded" } } },
    { method: "thread/closed", params: { threadId: left } },
  ]);
  expect(threads.ids).toEqual([fleeting, back]);
});
