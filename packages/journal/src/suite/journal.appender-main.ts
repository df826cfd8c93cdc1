/** The child of `journal.appender.ts`: appends `count` events, every tenth one the end of a turn. */
import { writeSync } from "node:fs";
import { toHeddleError } from "@heddle/protocol";
import { completed, said } from "./journal.samples.ts";
import type { Backend } from "./journal.suite.ts";

interface Work {
  readonly address: string;
  readonly backend: string;
  readonly stream: string;
  readonly count: number;
  readonly durability?: "full" | "relaxed";
  readonly size?: number;
  readonly goesOn?: boolean;
}

const work: Work = JSON.parse(process.argv[2] ?? "{}");

const backend = (await import(work.backend)) as Backend;
await using journal = await backend.openAt(work.address);
for (let index = 1; index <= work.count; index += 1) {
  const body = index % 10 === 0 ? completed(`t${index}`) : said("x".repeat(work.size ?? 100));
  try {
    const { durability = "full" } = work;
    const { events } = await journal.append({ stream: work.stream, author: "system", events: [body], durability });
    // Written at once, so that acknowledged events are known even after a kill.
    writeSync(1, `ack ${events[0]?.id}\n`);
  } catch (error) {
    writeSync(1, `refused ${toHeddleError(error).code}\n`);
    if (work.goesOn !== true) break;
  }
}
