import { journalProcessSuite } from "./journal.process-suite.ts";
import { testHome } from "./journal.samples.ts";
import { openJournal } from "./sqlite.ts";

journalProcessSuite("journal on SQLite, several processes", async () => {
  const home = await testHome();
  return {
    address: home.path,
    open: (options) => openJournal({ home: home.path, ...options }),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
});
