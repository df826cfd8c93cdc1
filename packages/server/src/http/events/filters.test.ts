import { expect, test } from "vitest";
import { openHttpWorld } from "../../../test/http-world.ts";
import { follow } from "../../../test/sse-client.ts";

test("one stream brings what is asked for of several threads and tasks: by type, by thread, stored and live", async () => {
  await using world = await openHttpWorld();
  const [one, two, other] = [await world.newThread(), await world.newThread(), await world.newThread()];
  const taskId = await world.newTask();
  const path = `${world.url}/api/events?types=thread.created,task.created,thread.named&streams=${one},${two},${taskId}`;
  using client = await follow(path, world.tokens.viewer);
  await client.waitFor(({ event }) => event === "caughtUp");
  for (const threadId of [other, one, two]) {
    await world.append(threadId, 1);
    await world.heddle.as("user:owner").nameThread({ threadId, name: "named" });
  }
  await client.waitFor(({ data }) => data["threadId"] === two && data["seq"] === 3);
  const heard = client.messages.filter(({ id }) => id !== undefined).map(({ data }) => [data["threadId"], data["seq"]]);
  expect(heard).toEqual([
    [one, 1],
    [two, 1],
    [taskId, 1],
    [one, 3],
    [two, 3],
  ]);
});
