import { expect, test } from "vitest";
import { ask, openHttpWorld } from "../../test/http-world.ts";

test("V3 V18: an unknown field is 400, also of a note that names an author; a viewer reads and does not note", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const status = async (path: string, options: Parameters<typeof ask>[2]): Promise<number> =>
    (await ask(world.port, path, options)).status;
  const token = world.tokens.user;
  expect(await status("/api/evidence?autor=x", { token })).toBe(400);
  expect(await status("/api/evidence?claim=guess", { token })).toBe(400);
  expect(await status("/api/evidence/events?claim=guess", { token })).toBe(400);
  const note = { claim: "step", text: "x" };
  const forged = { method: "POST", token, body: { ...note, author: "user:owner" } };
  expect(await status(`/api/threads/${threadId}/evidence`, forged)).toBe(400);
  const seen = { method: "POST", token: world.tokens.viewer, body: note };
  expect(await status(`/api/threads/${threadId}/evidence`, seen)).toBe(403);
});
