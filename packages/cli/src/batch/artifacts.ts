/**
 * The folder of one run: made new, private, and held open, so that every file in it is written whole and where it belongs.
 * What cannot be written is remembered as the failure of the run; the turn itself continues.
 */
import { closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import path from "node:path";
import { diskFaultOf, HeddleError, reasonOf, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { holdFolder, type HeldFolder } from "@heddle/tools/held-folder";
import { usage } from "../args.ts";

export type RunState = "pending" | "running" | "completed" | "failed" | "cancelled";

export interface Artifacts extends Disposable {
  /** Absolute and real. */
  readonly path: string;
  /** Files written so far, by what they hold. */
  readonly paths: Readonly<Record<string, string>>;
  /** The first thing that could not be written. */
  readonly failure: HeddleError | undefined;
  write(name: ArtifactName, content: string | Uint8Array): void;
  state(status: RunState, facts?: Readonly<Record<string, unknown>>): void;
  event(event: StoredEvent): void;
  /** Makes the events so far durable. */
  syncEvents(): void;
  stderr(text: string): void;
  keepOutput(callId: string, file: string): Promise<void>;
  /** Throws when a link where agents may write led to this folder. */
  refuseLinksOf(roots: readonly string[]): void;
}

const NAMES = {
  manifest: "manifest.json",
  run_state: "run-state.json",
  events: "events.jsonl",
  transcript: "transcript.json",
  report: "report.json",
  capabilities: "capabilities.json",
  policy: "policy.json",
  stderr: "stderr.log",
  diff: "diff.patch",
  result: "result.json",
} as const;
export type ArtifactName = keyof typeof NAMES;

/** Refuses what can be seen beforehand: a run id that is in use, or a folder in which nothing can be made. */
export function checkArtifactRoot(root: string, runId: string): void {
  const folder = path.join(root, runId);
  if (existsSync(folder)) throw usage(`${folder} exists; each run needs a --run-id of its own`);
  let above = root;
  while (!existsSync(above) && path.dirname(above) !== above) above = path.dirname(above);
  try {
    closeSync(openSync(above, constants.O_RDONLY | constants.O_DIRECTORY));
  } catch {
    throw usage(`--artifact-root ${root} cannot be used: ${above} is not a folder, or cannot be read`);
  }
}

export function openArtifacts(root: string, runId: string): Artifacts {
  checkArtifactRoot(root, runId);
  try {
    using above = holdFolder(root, { makes: true });
    mkdirSync(above.at(runId), { mode: 0o700 });
    return new RunFolder(above.below(runId), runId);
  } catch (error) {
    throw asFailure(error, path.join(root, runId));
  }
}

class RunFolder implements Artifacts {
  readonly path: string;
  readonly paths: Record<string, string> = {};
  failure: HeddleError | undefined;
  readonly #folder: HeldFolder;
  readonly #runId: string;
  readonly #createdAt = new Date().toISOString();
  readonly #logs = new Map<"events" | "stderr", number>();

  constructor(folder: HeldFolder, runId: string) {
    this.path = folder.path;
    this.#folder = folder;
    this.#runId = runId;
  }

  write(name: ArtifactName, content: string | Uint8Array): void {
    this.#attempt(NAMES[name], () => {
      this.#folder.write(NAMES[name], content);
      this.#wrote(name);
    });
  }

  state(status: RunState, facts: Readonly<Record<string, unknown>> = {}): void {
    const times = { created_at: this.#createdAt, updated_at: new Date().toISOString() };
    const state = { type: "heddle.run.state", version: 1, run_id: this.#runId, status, ...times, pid: process.pid };
    this.write("run_state", asJson({ ...state, ...facts }));
  }

  event(event: StoredEvent): void {
    this.#append("events", `${JSON.stringify(event)}\n`);
  }

  syncEvents(): void {
    this.#attempt(NAMES.events, () => {
      for (const fd of this.#logs.values()) fsyncSync(fd);
      this.#folder.sync();
    });
  }

  stderr(text: string): void {
    this.#append("stderr", text);
  }

  async keepOutput(callId: string, file: string): Promise<void> {
    const name = `${callId.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 100)}.log`;
    try {
      using outputs = this.#folder.below("tool-outputs");
      await copyFile(file, outputs.at(name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
      this.paths["tool_outputs"] = path.join(this.path, "tool-outputs");
    } catch (error) {
      this.failure ??= asFailure(error, `${this.path}/tool-outputs/${name}`);
    }
  }

  refuseLinksOf(roots: readonly string[]): void {
    this.#folder.refuseLinksOf(roots);
  }

  [Symbol.dispose](): void {
    for (const fd of this.#logs.values()) closeSync(fd);
    this.#logs.clear();
    this.#folder[Symbol.dispose]();
  }

  #append(name: "events" | "stderr", text: string): void {
    this.#attempt(NAMES[name], () => {
      failpoint("artifact.before-append");
      const known = this.#logs.get(name);
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
      const fd = known ?? openSync(this.#folder.at(NAMES[name]), flags, 0o600);
      this.#logs.set(name, fd);
      this.#wrote(name);
      const bytes = Buffer.from(text);
      for (let done = 0; done < bytes.length; done += writeSync(fd, bytes, done)) continue;
    });
  }

  #attempt(name: string, write: () => void): void {
    try {
      write();
    } catch (error) {
      this.failure ??= asFailure(error, path.join(this.path, name));
    }
  }

  #wrote(name: ArtifactName): void {
    this.paths[name] = path.join(this.path, NAMES[name]);
  }
}

export function asFailure(error: unknown, file: string): HeddleError {
  if (error instanceof HeddleError) return error;
  return new HeddleError(diskFaultOf(error), `${file} could not be written: ${reasonOf(error)}`, { cause: error });
}

/** A document as it is written into a file of its own. */
export function asJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
