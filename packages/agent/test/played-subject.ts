/** A subject of the runner suite whose agent is the played program (`agent-play-in-child.ts`). */
import { join } from "node:path";
import type { RunnerCapabilities } from "../src/runners/abilities.ts";
import type { RunnerSubject } from "../src/runners/runner.suite.ts";
import type { PlayStep } from "./agent-play-in-child.ts";
import type { ExecStep } from "./exec-play-in-child.ts";
import type { OpenCodeStep } from "./opencode-play-in-child.ts";
import type { TestHeddleOptions } from "./test-heddle.ts";

type PlayedProtocol = "codex" | "codex-exec" | "claude" | "opencode" | "acp";

const PLAYERS: ReadonlyMap<string, string> = new Map([
  ["codex-exec", "exec-play-in-child.mjs"],
  ["opencode", "opencode-play-in-child.mjs"],
]);

export function playedOptions(
  protocol: PlayedProtocol,
  steps: readonly (PlayStep | ExecStep | OpenCodeStep)[],
  children: string,
): TestHeddleOptions {
  const player = PLAYERS.get(protocol) ?? "agent-play-in-child.mjs";
  const args = [join(children, player), protocol, JSON.stringify(steps)];
  return {
    runners: { [protocol]: { protocol, command: process.execPath, args, hosts: [], folders: [] } },
    settings: { runner: protocol, provider: protocol, model: "default" },
  };
}

export function playedSubject(name: PlayedProtocol, capabilities: RunnerCapabilities, children: string): RunnerSubject {
  return {
    name,
    capabilities,
    options: (steps) => playedOptions(name, steps, children),
    inChild: (folder, steps) => [
      "--conditions=heddle-source",
      join(import.meta.dirname, "killed-in-child.ts"),
      folder,
      JSON.stringify(playedOptions(name, steps, children)),
    ],
  };
}
