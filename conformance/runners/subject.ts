/**
 * One real agent program of the suite: which package it comes from, how its models are moved to the scripted server, and how
 * its model says what a scenario wants done. Everything else is the same for all of them.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import type { RecordedRequest } from "@heddle/models/testing";
import type { Step } from "../exec-case.ts";
import type { Abilities } from "./suite.ts";

/** What the agent's model does next. */
export type AgentStep =
  | { readonly says: string; readonly thinks?: string }
  /** A command by the program's own shell tool. */
  | { readonly runs: string }
  /** The same, with every flag set by which the program itself can be told to go past its permissions. */
  | { readonly forces: string }
  /** A new file, by the program's own tool for files. */
  | { readonly writes: string; readonly content: string };

export interface Place {
  /** HOME of the program; its folders are below it. */
  readonly root: string;
  /** The scripted model server: http://127.0.0.1:PORT */
  readonly url: string;
}

export interface SetUp {
  /** `[runners.NAME]`, besides its protocol, command and version. */
  readonly runner: Readonly<Record<string, string | readonly string[]>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Under the root. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Subject {
  /** Also the name of its runner. */
  readonly name: string;
  readonly protocol: "codex" | "codex-exec" | "claude" | "opencode" | "acp";
  /** Pinned in conformance/package.json. */
  readonly package: string;
  /** Under node_modules: the program itself. */
  readonly file: string;
  setUp(place: Place): SetUp;
  step(step: AgentStep, request: RecordedRequest): Step;
  /** Some programs ask their model for titles and the like: such a request follows no script. */
  isOfTurn(request: RecordedRequest): boolean;
  /** The folder it is given for a file of a step: some want whole paths. */
  readonly wantsWholePaths?: boolean;
  /** Of its abilities: what it says of itself at its start, or is known for, in place of what its runner declares. */
  readonly says?: Partial<Abilities>;
  /** Of a command it says neither its exit code nor whether it failed. */
  readonly tellsNoExitCode?: boolean;
  /** It asks in a way that the service behind its wire refuses, and other servers of that wire accept. */
  readonly isUncheckedWire?: boolean;
}

const FOLDER = path.join(import.meta.dirname, "..");

/** A step in which the model only speaks. */
export function spoken({ says, thinks }: Extract<AgentStep, { readonly says: string }>): Step {
  return { text: says, ...(thinks === undefined ? {} : { reasoning: thinks }) };
}

/** Files that make folders which are there on every machine that has been used. */
export function keeping(...folders: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(folders.map((folder) => [`${folder}/.keep`, ""]));
}

export function fileOf({ file }: Subject): string {
  return path.join(FOLDER, "node_modules", file);
}

export function versionOf(subject: Subject): string {
  const manifest: { dependencies: Record<string, string> } = JSON.parse(
    readFileSync(path.join(FOLDER, "package.json"), "utf8"),
  );
  const version = manifest.dependencies[subject.package];
  if (version === undefined) throw new Error(`${subject.package} is not pinned in conformance/package.json`);
  return version;
}
