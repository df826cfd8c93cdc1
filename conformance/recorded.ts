/**
 * What Codex did, kept in recorded/<case>.jsonl so that Heddle can be held to it where Codex is not installed. One line for
 * each start of the program, each line or piece of its stdout, its end, and each file that was looked at.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { CaseSeen, RunSeen } from "./observe.ts";

const FOLDER = path.join(import.meta.dirname, "recorded");

type Entry =
  | { readonly start: readonly string[] }
  | { readonly event: unknown }
  | { readonly text: string }
  | ({ readonly end: number | string } & Pick<RunSeen, "requests" | "asked" | "stderr">)
  | { readonly file: string; readonly content: string | null };

export function writeRecord(seen: CaseSeen): void {
  const entries: Entry[] = seen.runs.flatMap(({ args, exit, stdout, stderr, requests, asked }): Entry[] => [
    { start: args },
    ...stdoutEntries(stdout),
    { end: exit, requests, ...(asked === undefined ? {} : { asked }), stderr },
  ]);
  for (const [file, content] of Object.entries(seen.files)) entries.push({ file, content });
  writeFileSync(fileOf(seen.id), entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
}

export function readRecord(id: string): CaseSeen {
  const runs: RunSeen[] = [];
  const files: Record<string, string | null> = {};
  let args: readonly string[] = [];
  let stdout = "";
  for (const line of readFileSync(fileOf(id), "utf8").split("\n").filter(Boolean)) {
    const entry: Entry = JSON.parse(line);
    if ("start" in entry) [args, stdout] = [entry.start, ""];
    else if ("event" in entry) stdout += `${JSON.stringify(entry.event)}\n`;
    else if ("text" in entry) stdout += entry.text;
    else if ("file" in entry) files[entry.file] = entry.content;
    else {
      const { end, requests, stderr, asked } = entry;
      runs.push({ args, exit: end, stdout, stderr, requests, ...(asked === undefined ? {} : { asked }) });
    }
  }
  return { id, runs, files };
}

/** A run prints JSON lines or text, never both. */
function stdoutEntries(stdout: string): Entry[] {
  const lines = stdout.split("\n").filter((line) => line !== "");
  if (lines.every((line) => line.startsWith('{"'))) return lines.map((line) => ({ event: JSON.parse(line) }));
  return stdout === "" ? [] : [{ text: stdout }];
}

function fileOf(id: string): string {
  return path.join(FOLDER, `${id}.jsonl`);
}
