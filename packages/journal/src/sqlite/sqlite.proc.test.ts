import { processSuite } from "../suite/processes.suite.ts";
import * as backend from "./sqlite.backend.ts";

processSuite("journal on SQLite, several processes", backend);
