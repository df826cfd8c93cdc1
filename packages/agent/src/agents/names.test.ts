import { openJournal } from "@heddle/journal";
import { expect, test } from "vitest";
import { openMessageStore } from "../../test/message-store.ts";
import { findAgent, nameAgent } from "./names.ts";

const by = "user:owner";

test("an agent is found by its name until it has another; a name that is given away is free again", async () => {
  await using store = await openMessageStore();
  const { journal } = store;
  const [one, two] = [await store.thread(), await store.thread()];
  await nameAgent(journal, { threadId: one, name: "scout", by });
  expect((await findAgent(journal, "scout")).id).toBe(one);
  await expect(nameAgent(journal, { threadId: two, name: "scout", by })).rejects.toMatchObject({
    code: "agent.name-taken",
  });
  await nameAgent(journal, { threadId: one, name: "ranger", by });
  await nameAgent(journal, { threadId: two, name: "scout", by });
  expect([(await findAgent(journal, "scout")).id, (await findAgent(journal, "ranger")).id]).toEqual([two, one]);
  await nameAgent(journal, { threadId: two, name: null, by });
  await expect(findAgent(journal, "scout")).rejects.toMatchObject({ code: "agent.not-found" });
});

test("a name is short and plain: nothing in it can look like something else", async () => {
  await using store = await openMessageStore();
  const threadId = await store.thread();
  for (const name of ["", "Scout", "a b", "-x", "x".repeat(41), "scout\u202E", "s\u0000"]) {
    await expect(nameAgent(store.journal, { threadId, name, by })).rejects.toMatchObject({ code: "usage.invalid" });
  }
});

test("of two processes that give one name at the same moment, one thread has it", async () => {
  await using store = await openMessageStore();
  await using other = await openJournal({ home: store.home });
  for (let round = 0; round < 8; round += 1) {
    const [one, two] = [await store.thread(), await store.thread()];
    const name = `agent-${round}`;
    const ends = await Promise.allSettled([
      nameAgent(store.journal, { threadId: one, name, by }),
      nameAgent(other, { threadId: two, name, by }),
    ]);
    expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await store.journal.threads.agentsNamed(name, { limit: 5 })).toHaveLength(1);
  }
});
