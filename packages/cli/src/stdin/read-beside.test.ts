import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { readBeside, type BesideOptions } from "./read-beside.ts";

const PATIENCE = { ancestorMs: 40, silenceMs: 80, lookEveryMs: 5 };

type Writers = Awaited<ReturnType<BesideOptions["writers"]>>;
const ANCESTOR: Writers = { kind: "ancestors", pid: 7, name: "sdk" };

function reading(kinds: readonly Writers[], more: Partial<BesideOptions> = {}) {
  const input = new PassThrough();
  const left = [...kinds];
  const looks: string[] = [];
  const notified: string[] = [];
  const read = readBeside({
    stdin: input,
    signal: new AbortController().signal,
    notify: (text) => notified.push(text),
    isAsked: Promise.resolve(),
    writers: async () => {
      const next = left.length > 1 ? left.shift() : left[0];
      looks.push(next?.kind ?? "");
      return next ?? { kind: "unknown" };
    },
    patience: PATIENCE,
    ...more,
  });
  read.catch(() => undefined);
  return { input, read, looks, notified };
}

test("12.8a: as long as somebody else could write, the pipe is waited for, past every patience", async () => {
  const { input, read, looks, notified } = reading([{ kind: "others" }]);
  while (looks.length < 40) await new Promise((resolve) => setImmediate(resolve));
  input.end("late");
  expect(await read).toEqual({ bytes: Buffer.from("late") });
  expect(notified).toEqual(["Reading additional input from stdin..."]);
});

test("12.8a: what is in the pipe is taken, although nobody holds it any more and all patience is over", async () => {
  const { input, read } = reading([{ kind: "nobody" }], {
    patience: { ancestorMs: 0, silenceMs: 0, lookEveryMs: 1 },
    isAsked: new Promise((resolve) => setImmediate(resolve)),
  });
  input.end("there");
  expect(await read).toEqual({ bytes: Buffer.from("there") });
});

test("12.8a: a silent pipe is given up, and why is told, when only this process or those it comes from hold it", async () => {
  expect(await reading([{ kind: "nobody" }]).read).toMatchObject({
    bytes: Buffer.alloc(0),
    abandoned: expect.stringContaining("no other process has open for writing"),
  });
  expect(await reading([{ kind: "others" }, ANCESTOR]).read).toMatchObject({
    abandoned: expect.stringContaining("held open by sdk (process 7)"),
  });
});

test("12.8a: no part of an input is taken for the whole, and what nobody can see is not taken for nothing", async () => {
  const begun = reading([ANCESTOR]);
  begun.input.write("half");
  await expect(begun.read).rejects.toMatchObject({
    code: "prompt.unfinished",
    message: expect.stringContaining("4 bytes came"),
  });
  await expect(reading([{ kind: "unknown" }]).read).rejects.toMatchObject({ code: "prompt.unfinished" });
});

test("12.8a: a stop ends the wait", async () => {
  const control = new AbortController();
  const { read, looks } = reading([{ kind: "others" }], { signal: control.signal });
  while (looks.length < 2) await new Promise((resolve) => setImmediate(resolve));
  control.abort(new Error("stopped"));
  await expect(read).rejects.toMatchObject({ message: "stopped" });
});
