import { expect, test } from "vitest";
import { untilFree } from "./driver.ts";
import { busyError, faultOf, toStoreError, writeFaultOf } from "./store-errors.ts";

const sqliteError = (errcode: number): Error => Object.assign(new Error("from SQLite"), { errcode });

test("work is done again while the store is locked", async () => {
  let tries = 0;
  const result = await untilFree(() => {
    tries += 1;
    if (tries < 5) throw busyError();
    return "done";
  });
  expect([result, tries]).toEqual(["done", 5]);
});

test("a lock that outlasts the deadline becomes store.busy", async () => {
  const error: unknown = await untilFree(() => Promise.reject(busyError()), 20).catch((caught: unknown) => caught);
  expect(toStoreError(error, "/tmp/x")).toMatchObject({ code: "store.busy" });
});

test("any other failure is not tried again", async () => {
  let tries = 0;
  const work = untilFree(() => {
    tries += 1;
    throw sqliteError(10);
  });
  await expect(work).rejects.toMatchObject({ errcode: 10 });
  expect(tries).toBe(1);
});

test.each([
  [5, "busy"],
  [261, "busy"], // BUSY_RECOVERY
  [517, "busy"], // BUSY_SNAPSHOT
  [13, "full"],
  [8, "read-only"],
  [1032, "io"], // READONLY_DBMOVED: the file was moved away
  [1034, "io"], // IOERR_FSYNC
  [11, "damaged"],
  [779, "damaged"], // CORRUPT_INDEX
  [26, "damaged"],
  [1, "other"],
] as const)("SQLite's %i is %s", (errcode, fault) => {
  expect(faultOf(sqliteError(errcode))).toBe(fault);
});

test("on a disk with room an I/O error is not called a full disk", () => {
  expect(writeFaultOf(sqliteError(4874), "/tmp/x")).toBe("io");
});
