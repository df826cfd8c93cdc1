/** What Codex sent, kept in recorded/app-<scenario>.json, one message a line. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { ScenarioSeen } from "./play.ts";

const FOLDER = path.join(import.meta.dirname, "..", "recorded");

export function writeSeen({ id, heard, exit }: ScenarioSeen): void {
  const clients = heard.map(({ client, messages }) => {
    const lines = messages.map((message) => `      ${JSON.stringify(message)}`).join(",\n");
    return `    { "client": ${JSON.stringify(client)}, "messages": [\n${lines}\n    ]}`;
  });
  const end = exit === undefined ? "" : `,\n  "exit": ${JSON.stringify(exit)}`;
  writeFileSync(fileOf(id), `{\n  "id": ${JSON.stringify(id)},\n  "heard": [\n${clients.join(",\n")}\n  ]${end}\n}\n`);
}

export function readSeen(id: string): ScenarioSeen {
  return JSON.parse(readFileSync(fileOf(id), "utf8"));
}

function fileOf(id: string): string {
  return path.join(FOLDER, `app-${id}.json`);
}
