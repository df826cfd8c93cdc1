import { journalSuite } from "../suite/journal.suite.ts";
import { processSuite } from "../suite/processes.suite.ts";
import * as backend from "./postgres.backend.ts";

const { newStore, openAt } = backend;

journalSuite("journal on Postgres", { newStore: () => newStore(), openAt });
processSuite("journal on Postgres, several processes", { newStore: () => newStore(), openAt });
