/** `HOME`: fills a thread and purges it; struck by a failpoint on the way. */
import { created, said } from "../src/suite/journal.samples.ts";
import { openJournal } from "../src/sqlite/sqlite.ts";

const [home = ""] = process.argv.slice(2);
await using journal = await openJournal({ home });
await journal.append({ stream: "a", author: "user:owner", events: [created] });
await journal.append({ stream: "a", author: "user:owner", events: Array.from({ length: 200 }, () => said("word")) });
await journal.purge({ stream: "a", author: "user:owner", reason: "asked for" });
