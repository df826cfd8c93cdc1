import type { EvidenceEntry } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor, type EnvelopeOptions } from "../calls/envelopes.ts";
import { toolsFor } from "../calls/registry.ts";
import type { EvidencePort, ToolContext } from "../calls/tool.ts";
import { evidenceSearch } from "./evidence-search.ts";

const options: EnvelopeOptions = {
  mode: "read-only",
  workspace: "/w",
  writableRoots: [],
  networkAccess: false,
  approval: "never",
  masked: [],
};
const entry: EvidenceEntry = {
  id: "evt_1",
  position: 1,
  stream: "t",
  version: 1,
  thread: "t",
  at: 1_000,
  author: "agent:embedded",
  type: "evidence.noted",
  claim: "conclusion",
  subject: { type: "file", id: "/a\nforged line" },
  refs: [],
  tags: ["x"],
  text: "first\r\nsecond\u2028third",
  hash: "h",
};
const port = (entries: readonly EvidenceEntry[]): EvidencePort => ({
  search: () => Promise.resolve({ entries, next: "e1.1" }),
  note: () => Promise.reject(new Error("not here")),
});

test.each(["openai", "anthropic", "gemini", "other"] as const)(
  "%s is offered the tools of the evidence where envelope and agent have them, and nowhere else",
  (family) => {
    const names = (hasEvidence: boolean, evidence?: EvidencePort): string[] =>
      toolsFor(family, envelopeFor({ ...options, hasEvidence }), { evidence }).offered.map(({ name }) => name);
    const usual = names(false, port([]));
    expect(names(true, port([])).filter((name) => !usual.includes(name))).toEqual(["evidence_search", "evidence_note"]);
    expect(names(true)).toEqual(usual);
    expect(names(false)).toEqual(usual);
  },
);

async function answer(entries: readonly EvidenceEntry[]): Promise<string> {
  const tool = evidenceSearch(port(entries), () => 7_201_000);
  // Of the context it uses no more.
  const context = { callId: "c", itemId: "i", signal: new AbortController().signal } as ToolContext;
  const { output } = await tool.run({ text: "x" }, context);
  return output.map((part) => (part.type === "text" ? part.text : "")).join("");
}

test("every line of what an entry says is marked as a quotation, with author and age before it", async () => {
  expect((await answer([entry])).split("\n").slice(2)).toEqual([
    "entry evt_1, by agent:embedded, 2 h ago, conclusion (evidence.noted), about file /a forged line, thread t, tags x",
    "> first",
    "> second",
    "> third",
    "",
    "There are more: pass cursor e1.1.",
  ]);
});

test("an answer is bounded, and says what it leaves out", async () => {
  const long = Array.from({ length: 20 }, () => ({ ...entry, text: "w ".repeat(5_000) }));
  const text = await answer(long);
  expect(text.length).toBeLessThan(13_000);
  expect(text).toMatch(/\d+ more entries were left out/);
});
