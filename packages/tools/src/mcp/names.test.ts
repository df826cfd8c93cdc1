import { expect, test } from "vitest";
import { asCanonical, canonicalName, canonicalServer, matchesName, offeredNames, serverPattern } from "./names.ts";

test("plain names stay readable", () => {
  expect(offeredNames([{ server: "wiki", tool: "search-pages" }])).toEqual(["mcp__wiki__search-pages"]);
  expect(canonicalName("wiki", "search-pages")).toBe("mcp.wiki.search-pages");
});

test("names are cleaned, cut to 64 characters and never the same", () => {
  const tools = [
    { server: "a", tool: "x.y" },
    { server: "a", tool: "x y" },
    { server: "a", tool: "ü".repeat(300) },
    { server: "a", tool: `${"t".repeat(100)}1` },
    { server: "a", tool: `${"t".repeat(100)}2` },
    { server: "", tool: "" },
    { server: "a", tool: "read" },
  ];
  const names = offeredNames(tools);
  for (const name of names) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/);
  expect(new Set(names).size).toBe(tools.length);
  expect(names.at(-1)).toBe("mcp__a__read");
  // Whoever else is listed first changes nothing.
  expect(offeredNames(tools.toReversed())).toEqual(names.toReversed());
});

test("the pattern of a server covers its tools and no tool of a server whose name begins like it", () => {
  expect(matchesName(serverPattern("a"), canonicalName("a", "b.c"))).toBe(true);
  expect(matchesName(serverPattern("a"), canonicalName("a.b", "c"))).toBe(false);
  expect(matchesName(serverPattern("a"), canonicalName("ab", "c"))).toBe(false);
  expect(canonicalServer("a.b")).not.toBe(canonicalServer("a b"));
  expect(matchesName("read", "read")).toBe(true);
  expect(matchesName("read", "reader")).toBe(false);
});

test("a name as models know it is understood as the canonical one", () => {
  expect(asCanonical("mcp__wiki__search")).toBe("mcp.wiki.search");
  expect(asCanonical("mcp__wiki__*")).toBe("mcp.wiki.*");
  expect(asCanonical("exec_command")).toBe("exec_command");
});
