/**
 * How a person takes a thread over: its agent's own program, continuing the conversation that the thread's next turn would
 * continue. Only from the record, so that every door can show it.
 */
import { existsSync } from "node:fs";
import { HeddleError, type Takeover } from "@heddle/protocol";
import type { ReadJournal } from "../../threads/history.ts";
import { readLastSettings } from "../../threads/past.ts";
import { EMBEDDED } from "../config.ts";
import { lastConnected } from "./handle.ts";
import { KNOWN_PROGRAMS } from "./known.ts";
import { liveFile } from "./live-file.ts";

/**
 * undefined: its agent has no program, or no conversation yet that is this thread's alone. `home`: also how to join what runs,
 * where its agent allows that.
 */
export async function readTakeover(
  journal: ReadJournal,
  threadId: string,
  home?: string,
): Promise<Takeover | undefined> {
  const runner = (await readLastSettings(journal, threadId))?.runner ?? EMBEDDED;
  if (runner === EMBEDDED) return undefined;
  const connected = await lastConnected(journal, threadId, runner);
  const folder = (await journal.threads.get(threadId))?.workspace;
  // The conversation of a thread that this one was forked from stays that thread's.
  if (connected === undefined || connected.isOfOther || folder === undefined) return undefined;
  const program = connected.resumeCommand ?? knownCommand(runner, connected.handle);
  if (program === undefined) return undefined;
  const last = home === undefined ? undefined : await journal.threads.lastTurn(threadId);
  const isOpen = home !== undefined && last?.status === "open" && existsSync(liveFile(home, last.id));
  const join = isOpen ? { join: `heddle attach ${threadId} --live` } : {};
  return { command: `heddle attach ${threadId}`, program: [...program], folder, ...join };
}

/** Its agent is Heddle's own loop, which has no program of another maker. */
export async function isOfOwnLoop(journal: ReadJournal, threadId: string): Promise<boolean> {
  return ((await readLastSettings(journal, threadId))?.runner ?? EMBEDDED) === EMBEDDED;
}

/** `runner.unsupported` where there is none, with what can be done. */
export async function requireTakeover(journal: ReadJournal, threadId: string): Promise<Takeover> {
  const found = await readTakeover(journal, threadId);
  if (found !== undefined) return found;
  const runner = (await readLastSettings(journal, threadId))?.runner ?? EMBEDDED;
  const here = runner === EMBEDDED ? `heddle attach ${threadId}` : `heddle exec resume ${threadId} "…"`;
  const connected = runner === EMBEDDED ? undefined : await lastConnected(journal, threadId, runner);
  const why =
    connected === undefined || connected.isOfOther
      ? `thread ${threadId} has no conversation that a person could continue in a program of its agent`
      : `Heddle does not know how a person continues conversation ${connected.handle} of ${runner} in its own interface; if it has one, add resume = ["--resume", "{id}"], or what its program takes, to [runners.${runner}] of config.toml, which counts from the next turn on`;
  throw new HeddleError("runner.unsupported", `${why}; continue it here: ${here}`);
}

/** Of records that an earlier version has written. */
function knownCommand(runner: string, handle: string): readonly string[] | undefined {
  const known = Object.hasOwn(KNOWN_PROGRAMS, runner) ? KNOWN_PROGRAMS[runner] : undefined;
  return known?.resume === undefined ? undefined : [known.command, ...known.resume(handle)];
}
