/** Threads of every door, as a client of app-server finds them. */
import { openJournal } from "@heddle/journal";
import { startModelServer } from "@heddle/models/testing";
import { newThreadId, type TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { at, KEY, list, pointAt, serve, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

test("threads of exec, and forks of them at either door, tell of the repository they began in", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const sha = "a".repeat(40);
  await world.file("workspace/.git/refs/heads/main", `${sha}\n`);
  await world.file("workspace/.git/config", `[remote "origin"]\n\turl = https://example.com/team/repo.git\n`);
  const ids = async () =>
    list(await client.call("thread/list", { sourceKinds: ["exec"] }), "data").map((thread) => text(thread, "id"));
  await run(["exec", "go"], { world, env: KEY });
  const [parent = ""] = await ids();
  await run(["exec", "fork", parent, "go on"], { world, env: KEY });
  const fork = await client.call("thread/fork", { threadId: parent, excludeTurns: true });
  const gitInfo = { sha, branch: "main", originUrl: "https://example.com/team/repo.git" };
  expect(at(fork, "thread.gitInfo")).toEqual(gitInfo);
  const found = await ids();
  expect(found).toHaveLength(2);
  for (const threadId of found) {
    expect(at(await client.call("thread/read", { threadId }), "thread.gitInfo")).toEqual(gitInfo);
  }
});

test("thread/list finds the threads of a provider behind any number of others, page by page", async () => {
  await using world = await openWorld();
  const settings: Omit<TurnSettings, "provider"> = {
    model: "m",
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  };
  const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
  // Those of one millisecond are listed by their ids.
  const ids = Array.from({ length: 520 }, () => newThreadId()).toSorted();
  {
    await using journal = await openJournal({ home: world.home });
    for (const [index, stream] of ids.entries()) {
      const provider = index < 3 ? "rare" : "common";
      const turnId = `turn-${index}`;
      const input = [{ type: "text" as const, text: "go" }];
      await journal.append({
        stream,
        author: "user:owner",
        events: [
          { type: "thread.created", v: 1, workspace: world.workspace, origin: "app-server:probe" },
          { type: "turn.admitted", v: 1, turnId, input, settings: { ...settings, provider }, holder },
        ],
      });
    }
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const page = await client.call("thread/list", { modelProviders: ["rare"], limit: 2 });
  const next = { modelProviders: ["rare"], limit: 2, cursor: text(page, "nextCursor") };
  const last = await client.call("thread/list", next);
  const found = [...list(page, "data"), ...list(last, "data")];
  expect(found.map((thread) => [text(thread, "id"), text(thread, "modelProvider")])).toEqual(
    ids
      .slice(0, 3)
      .toReversed()
      .map((id) => [id, "rare"]),
  );
  expect(at(last, "nextCursor")).toBeNull();
});
