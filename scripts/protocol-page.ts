/**
 * Writes the table of methods into docs/build/protocol.md, from the tables that the server itself uses.
 * Usage: npm run protocol
 */
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describeMethods, type DescribedMethod } from "@heddle/server/methods";

const PAGE = path.join(import.meta.dirname, "..", "docs", "build", "protocol.md");
const BEGIN = "<!-- methods: npm run protocol -->";
const END = "<!-- /methods -->";

export function methodTable(methods: readonly DescribedMethod[]): string {
  const rows = methods.map(({ name, tier, isExperimental, isSupported, note }) => {
    const here = isSupported ? "yes" : "no";
    return `| \`${name}\` | ${tier}${isExperimental ? ", experimental" : ""} | ${here} | ${note} |`;
  });
  const yes = methods.filter(({ isSupported }) => isSupported).length;
  return [
    `${yes} of ${methods.length} methods.`,
    "",
    "| Method | Tier | Here | |",
    "| --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

/** The page with its table made anew; the rest is written by hand. */
export function withTable(page: string, table: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${PAGE} has no marks for the table: ${BEGIN} … ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${table}\n\n${page.slice(end)}`;
}

if (import.meta.main) {
  await writeFile(PAGE, withTable(await readFile(PAGE, "utf8"), methodTable(describeMethods())));
}
