import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CODEX_METHODS } from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { mayCall, OWN_METHODS } from "./methods.ts";
import { SESSION_HANDLERS } from "./outside.ts";

test("methods of Heddle's own are documented, and hide none of Codex", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../../../docs/build/protocol.md", import.meta.url)), "utf8");
  const names = [...OWN_METHODS.keys()];
  expect(names).not.toEqual([]);
  expect(names.filter((name) => !page.includes(`| \`${name}\` `))).toEqual([]);
  expect(names.filter((name) => CODEX_METHODS.has(name))).toEqual([]);
});

test("an observer may call what reads and nothing else: every method of the dialect by every role", () => {
  const all = [...CODEX_METHODS.keys(), ...OWN_METHODS.keys()];
  const open = (role: "viewer" | "user" | "owner"): string[] => all.filter((name) => mayCall(role, name)).toSorted();
  const reads = [
    "agent/get",
    "agent/list",
    "evidence/chain",
    "evidence/count",
    "evidence/get",
    "evidence/query",
    "evidence/subscribe",
    "evidence/unsubscribe",
    "initialize",
    "message/get",
    "message/list",
  ];
  expect(open("viewer")).toEqual(reads);
  const sessions = SESSION_HANDLERS.map(([name]) => name);
  const writes = [
    "agent/name",
    "agent/wake",
    "evidence/note",
    "evidence/verify",
    "message/ask",
    "message/tell",
    ...sessions,
  ];
  expect(open("user")).toEqual([...reads, ...writes].toSorted());
  expect(open("owner")).toEqual(all.toSorted());
});
