/**
 * Scenarios on a file system of their own, run as a child inside a mount namespace: `<scenario> <mount point>`.
 * Each prints what it saw as one line of JSON.
 */
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { toHeddleError, type EventBody } from "@heddle/protocol";
import { admitted, completed, created, said } from "../suite/journal.samples.ts";
import type { Journal } from "../journal.ts";
import { openJournal } from "./sqlite.ts";

const [scenario = "", mount = ""] = process.argv.slice(2);
const home = join(mount, "home");
const author = "system";

async function tryAppend(journal: Journal, events: readonly EventBody[], stream = "a"): Promise<string> {
  try {
    const appended = await journal.append({ stream, author, events });
    return `version ${appended.events.at(-1)?.version}`;
  } catch (error) {
    const { code, message } = toHeddleError(error);
    return message.includes(home) ? `${code} with the path` : code;
  }
}

function fillDisk(path: string): void {
  const fd = openSync(path, "w");
  try {
    for (let size = 1024 * 1024; size >= 1; size = Math.floor(size / 4)) {
      const chunk = Buffer.alloc(size, 1);
      for (;;) {
        try {
          if (writeSync(fd, chunk) < size) break;
        } catch (error) {
          if (error instanceof Error && "code" in error && error.code === "ENOSPC") break;
          throw error;
        }
      }
    }
  } finally {
    closeSync(fd);
  }
}

async function fullDisk(): Promise<unknown> {
  const reserve = join(home, "reserve");
  const filler = join(mount, "filler");
  await using journal = await openJournal({ home });
  await journal.append({ stream: "a", author, events: [created, admitted("t1")] });
  const hadReserve = existsSync(reserve);
  fillDisk(filler);
  let stored = 2;
  let refusal: string;
  for (;;) {
    refusal = await tryAppend(journal, [said("x".repeat(3000))]);
    if (!refusal.startsWith("version")) break;
    stored += 1;
  }
  const again = await tryAppend(journal, [said("x".repeat(3000))]);
  const readable = (await journal.read({ stream: "a", after: 0 })).length;
  const terminal = await tryAppend(journal, [completed("t1")]);
  const reserveAfterTerminal = existsSync(reserve);
  fillDisk(join(mount, "filler2"));
  const full = await tryAppend(journal, [said("x".repeat(3000))]);
  for (const file of [filler, join(mount, "filler2")]) rmSync(file);
  const freed = await tryAppend(journal, [said("after")]);
  const deadline = performance.now() + 10_000;
  let versions = stored + 2;
  while (!existsSync(reserve) && performance.now() < deadline) {
    await delay(50);
    await journal.append({ stream: "a", author, events: [said("more")] });
    versions += 1;
  }
  const report = await journal.verify();
  return {
    hadReserve,
    refusal,
    again,
    readsAll: readable === stored,
    terminal: terminal === `version ${stored + 1}`,
    reserveAfterTerminal,
    full,
    freed: freed === `version ${stored + 2}`,
    reserveIsBack: existsSync(reserve),
    wholeAtTheEnd: report.events === versions && report.damage.length === 0,
  };
}

/** Eleven turns are open when the disk is full to the last byte; answers the sizes at which it did not go as it should. */
async function everySize(first: number, last: number): Promise<unknown> {
  const wrong: Record<string, unknown> = {};
  for (let megabytes = first; megabytes <= last; megabytes += 1) {
    // In a user namespace no size of a mount can be changed.
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "none", mount]);
    const saw = await endsOnFullDisk();
    const isRight =
      saw.refused === "store.full with the path" &&
      saw.refusal === "store.full" &&
      saw.ends.every((end) => end === "version 3") &&
      saw.freed === "version 4" &&
      saw.damage === 0;
    if (!isRight) wrong[`${megabytes}m`] = saw;
    execFileSync("umount", [mount]);
  }
  return wrong;
}

async function endsOnFullDisk() {
  const filler = join(mount, "filler");
  const streams = Array.from({ length: 11 }, (_, nth) => `s${nth}`);
  await using journal = await openJournal({ home });
  for (const stream of streams) await journal.append({ stream, author, events: [created, admitted(`t-${stream}`)] });
  fillDisk(filler);
  let refused: string;
  do refused = await tryAppend(journal, [said("x".repeat(30_000))], "other");
  while (refused.startsWith("version"));
  const refusal = (await journal.refusal())?.code;
  const ends: string[] = [];
  for (const stream of streams) ends.push(await tryAppend(journal, [completed(`t-${stream}`)], stream));
  rmSync(filler);
  const freed = await tryAppend(journal, [said("after")], "s0");
  return { refused, refusal, ends, freed, damage: (await journal.verify()).damage.length };
}

/** `leavesWal`: as after a kill, with the newest events still in the WAL. */
async function readOnly(leavesWal: boolean): Promise<unknown> {
  const journal = await openJournal({ home });
  await journal.append({ stream: "a", author, events: [created, said("x")] });
  if (leavesWal) {
    execFileSync("cp", ["-a", home, `${home}.copy`]);
    await journal[Symbol.asyncDispose]();
    execFileSync("mv", [home, `${home}.closed`]);
    execFileSync("mv", [`${home}.copy`, home]);
  } else {
    await journal[Symbol.asyncDispose]();
  }
  execFileSync("mount", ["-o", "remount,bind,ro", mount]);
  const before = readFileSync(join(home, "heddle.db"));
  await using reader = await openJournal({ home });
  return {
    isWritable: reader.isWritable,
    damage: reader.damage ?? "none",
    notices: reader.notices.map((notice) => notice.kind),
    events: (await reader.read({ after: 0 })).length,
    threads: (await reader.threads.list({ limit: 5 })).length,
    append: await tryAppend(reader, [said("y")]),
    unchanged: readFileSync(join(home, "heddle.db")).equals(before),
  };
}

/** Reads a store that belongs to somebody else; `home` is the argument itself. */
async function foreignHome(): Promise<unknown> {
  try {
    await using reader = await openJournal({ home: mount });
    return { events: (await reader.read({ after: 0 })).length, isWritable: reader.isWritable };
  } catch (error) {
    const { code, message } = toHeddleError(error);
    return { code, namesPath: message.includes(mount) };
  }
}

async function run(): Promise<unknown> {
  switch (scenario) {
    case "full-disk":
      return fullDisk();
    case "every-size":
      return everySize(Number(process.argv[4]), Number(process.argv[5]));
    case "read-only":
      return readOnly(false);
    case "read-only-wal":
      return readOnly(true);
    case "foreign-home":
      return foreignHome();
    default:
      throw new Error(`no scenario ${scenario}`);
  }
}

writeSync(1, `${JSON.stringify(await run())}\n`);
