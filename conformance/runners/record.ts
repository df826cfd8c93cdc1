/**
 * With `--record`, what the programs said in some scenarios is kept, small and without this machine's paths, in
 * packages/agent/test/recorded/suite-NAME.jsonl: `npm test` holds the runners to it where the programs are not installed.
 */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { blanker } from "./blanked.ts";
import type { Scene } from "./suite.ts";
import type { Subject } from "./subject.ts";
import { ofType } from "./turns.ts";

const FOLDER = path.join(import.meta.dirname, "..", "..", "packages", "agent", "test", "recorded");

/** Scenarios whose wire differs from program to program. */
const RECORDED: ReadonlySet<string> = new Set([
  "text",
  "a command",
  "a command that fails",
  "a file change",
  "before a command, which is declined",
  "before a file change, which is declined",
  "an interrupt in a command ends it, and the thread continues",
  "input while a command runs reaches the model in the same turn",
  "when the provider refuses the request",
  "when the key is refused",
  "in the next turn, with what was said and done",
]);

const MAX_TEXT = 200;
const MAX_ENTRIES = 6;

export const isRecording = process.env["HEDDLE_RECORD_WIRE"] === "1";

function fileOf(subject: Subject): string {
  return path.join(FOLDER, `suite-${subject.name}.jsonl`);
}

export function beginRecord(subject: Subject): void {
  rmSync(fileOf(subject), { force: true });
}

/** Scenarios by their names: the files of a run come in any order. */
export function endRecord(subject: Subject): void {
  const scenarios = readFileSync(fileOf(subject), "utf8").split(/^(?=\{"k":"scenario")/m);
  writeFileSync(fileOf(subject), scenarios.toSorted().join(""));
}

/** Every turn of a scene, each of a process of its own. */
export async function recordScene(subject: Subject, scene: Scene, title: string): Promise<void> {
  if (!RECORDED.has(title)) return;
  const blank = blankerOf(scene);
  for (const [nth, { transcript }] of ofType(await scene.events(), "agent.started").entries()) {
    if (transcript === undefined) continue;
    const lines = readFileSync(path.join(scene.world.home, transcript), "utf8").trim().split("\n");
    const entries = lines.flatMap((line) => {
      const entry: { readonly in?: string; readonly out?: string; readonly cut?: number } = JSON.parse(line);
      const text = entry.in ?? entry.out ?? "";
      // Text between messages is for people. What is too long for a transcript is a list of what the program could do.
      if (!text.startsWith("{") || entry.cut !== undefined) return [];
      return [{ k: entry.in === undefined ? "out" : "in", m: short(JSON.parse(blank(text))) }];
    });
    const scenario = nth === 0 ? title : `${title} (${nth + 1})`;
    const written = [{ k: "scenario", m: scenario }, ...entries].map((entry) => `${JSON.stringify(entry)}\n`);
    appendFileSync(fileOf(subject), written.join(""));
  }
}

function blankerOf({ workspace, world, model }: Scene): (text: string) => string {
  return blanker([
    [workspace, "/home/dev/project"],
    [world.root, "/home/dev"],
    [new URL(model.url).host, "127.0.0.1:1"],
  ]);
}

/** Instructions and lists of what a program could do are long, and no runner reads them. */
function short(value: unknown): unknown {
  if (typeof value === "string") return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (Array.isArray(value)) return value.length > MAX_ENTRIES ? [] : value.map(short);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, short(entry)]));
}
