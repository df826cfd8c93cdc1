/**
 * Writes offers.json, child-offers.json and message-offers.json of packages/tools/src/builtin: what the built-in tools tell a model of themselves.
 * Usage: npm run offers
 */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { makeChildOffers, makeMessageOffers, makeOffers } from "@heddle/tools/offers";

const folder = path.join(import.meta.dirname, "..", "packages", "tools", "src", "builtin");
const files = {
  "offers.json": await makeOffers(),
  "child-offers.json": makeChildOffers(),
  "message-offers.json": makeMessageOffers(),
};
for (const [name, offers] of Object.entries(files)) {
  await writeFile(path.join(folder, name), `${JSON.stringify(offers, undefined, 2)}\n`);
}
