import { expect, test } from "vitest";
import type { Holder } from "./namespaces.ts";
import { retrying } from "./retrying-holder.ts";

function holder(ready: Holder["ready"], closed: string[], name: string): Holder {
  ready.catch(() => undefined);
  return {
    ready,
    standBy: () => undefined,
    enter: async () => ({ kind: "spawn", file: name, args: [], env: {}, cwd: "/", pidDepth: 0, endsWithTree: true }),
    [Symbol.asyncDispose]: async () => {
      closed.push(name);
    },
  };
}

const HOLDS: Awaited<Holder["ready"]> = { processes: { by: "nothing" }, memory: { by: "nothing" } };
const fails = (): Holder["ready"] => Promise.reject(new Error("a mount went away"));

test("a holder that fails to finish is closed and made again, and commands enter the new one", async () => {
  const closed: string[] = [];
  const made = retrying(holder(fails(), closed, "first"), async () => holder(Promise.resolve(HOLDS), closed, "second"));
  expect(await made.enter(["true"], { cwd: "/", env: {} })).toMatchObject({ file: "second" });
  expect(closed).toEqual(["first"]);
});

test("after three tries the failure stands, for ready and for every command", async () => {
  const closed: string[] = [];
  let tries = 1;
  const made = retrying(holder(fails(), closed, "1"), async () => holder(fails(), closed, String((tries += 1))));
  await expect(made.ready).rejects.toThrow("a mount went away");
  await expect(made.enter(["true"], { cwd: "/", env: {} })).rejects.toThrow("a mount went away");
  expect(tries).toBe(3);
});

test("closing while a try fails makes no new one and leaves none open", async () => {
  const closed: string[] = [];
  const failing = Promise.withResolvers<Awaited<Holder["ready"]>>();
  const made = retrying(holder(failing.promise, closed, "first"), async () =>
    holder(Promise.resolve(HOLDS), closed, "late"),
  );
  const closing = made[Symbol.asyncDispose]();
  failing.reject(new Error("ended"));
  await closing;
  await expect(made.ready).rejects.toThrow("ended");
  expect(new Set(closed)).toEqual(new Set(["first"]));
});
