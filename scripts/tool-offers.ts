/**
 * Writes packages/tools/src/builtin/offers.json: what the built-in tools tell a model of themselves.
 * Usage: npm run offers
 */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { makeOffers } from "@heddle/tools/offers";

const file = path.join(import.meta.dirname, "..", "packages", "tools", "src", "builtin", "offers.json");
await writeFile(file, `${JSON.stringify(await makeOffers(), undefined, 2)}\n`);
