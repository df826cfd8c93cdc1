/**
 * Writes packages/tools/src/builtin/offers.json: what the built-in tools tell a model of themselves.
 * Usage: node --conditions=heddle-source scripts/tool-offers.ts
 */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { makeOffers } from "../packages/tools/src/builtin/make-offers.ts";

const file = path.join(import.meta.dirname, "..", "packages", "tools", "src", "builtin", "offers.json");
await writeFile(file, `${JSON.stringify(makeOffers(), undefined, 2)}\n`);
