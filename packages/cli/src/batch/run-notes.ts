/** What a batch run has gathered so far, and the writing of its end from it, at any moment and more than once. */
import type { TurnHandle } from "@heddle/agent";
import { uuidv7, type EventOf, type HeddleError, type RunResult, type StoredEvent, type Usage } from "@heddle/protocol";
import type { HeldFile } from "@heddle/tools/held-file";
import { asFailure, type Artifacts } from "./artifacts.ts";
import { asJson } from "./artifacts.ts";
import type { Attempt } from "./attempts.ts";
import { sumUp } from "./run-summary.ts";

export class RunNotes implements Disposable {
  runId = `run_${uuidv7()}`;
  manifest: unknown;
  outputSchema: unknown;
  resultFile: HeldFile | undefined;
  resultFailure: HeddleError | undefined;
  artifacts: Artifacts | undefined;
  failure: HeddleError | undefined;
  threadId: string | undefined;
  turnId: string | undefined;
  threadUsage: Usage | undefined;
  git: RunResult["git"] = null;
  isFinished = false;
  readonly attempts: Attempt[] = [];
  /** Thread and version of each attempt's admission, to read them again. */
  readonly handles: TurnHandle[] = [];
  readonly #heddleVersion: string;
  readonly #startedAt = Date.now();
  readonly #startedTick = performance.now();
  readonly #summing = sumUp();
  #isResultWritten = false;
  /** stderr from before there was a file for it. */
  #waiting = "";

  constructor(heddleVersion: string) {
    this.#heddleVersion = heddleVersion;
  }

  get wantsGit(): boolean {
    return this.resultFile !== undefined || this.artifacts !== undefined;
  }

  /** Something of the contract could not be kept. */
  get lost(): HeddleError | undefined {
    return this.artifacts?.failure ?? this.resultFailure;
  }

  started(handle: TurnHandle): void {
    this.threadId = handle.threadId;
    this.turnId = handle.turnId;
    this.handles.push(handle);
    const { threadId: thread_id, turnId: turn_id } = handle;
    this.artifacts?.state("running", { thread_id, turn_id, attempt: this.handles.length });
  }

  event(event: StoredEvent): void {
    this.#summing.add(event.body);
    this.artifacts?.event(event);
    if (event.body.type === "turn.started") this.#keepPolicy(event.body);
    if (event.body.type === "turn.completed") this.artifacts?.syncEvents();
  }

  #keepPolicy({ envelope, envelopeHash, sandboxLevel }: EventOf<"turn.started">): void {
    const policy = { type: "heddle.run.policy", version: 1, sandbox: sandboxLevel, envelope_sha256: envelopeHash };
    this.artifacts?.write("policy", asJson({ ...policy, envelope }));
  }

  stderr(text: string): void {
    if (this.artifacts === undefined) {
      this.#waiting += text;
      return;
    }
    this.artifacts.stderr(this.#waiting + text);
    this.#waiting = "";
  }

  throwIfFull(): void {
    if (this.artifacts?.failure !== undefined) throw this.artifacts.failure;
  }

  /** `cause`: what is ending the run while it still runs. */
  facts(cause?: HeddleError) {
    return {
      heddleVersion: this.#heddleVersion,
      runId: this.runId,
      startedAt: this.#startedAt,
      durationMs: performance.now() - this.#startedTick,
      failure: this.failure ?? cause ?? this.lost,
      summary: this.#summing.now,
      threadId: this.threadId,
      turnId: this.turnId,
      threadUsage: this.threadUsage,
      attempts: this.attempts,
      outputSchema: this.outputSchema,
      artifactRoot: this.artifacts?.path,
      paths: this.#paths(),
      git: this.git,
      manifest: this.manifest,
    };
  }

  writeEnd(result: () => RunResult): void {
    const { artifacts, resultFile } = this;
    if (artifacts !== undefined) {
      artifacts.syncEvents();
      const end = result();
      const { status, reason, exit_code, thread_id, turn_id } = end;
      artifacts.write("result", asJson(end));
      artifacts.state(status, { thread_id, turn_id, exit_code, ...(reason === undefined ? {} : { reason }) });
    }
    // A pipe has taken the first result, and another one would be no JSON any more.
    if (resultFile === undefined || (resultFile.isStream && this.#isResultWritten)) return;
    this.#isResultWritten = true;
    try {
      resultFile.writeNow(asJson(result()));
    } catch (error) {
      this.resultFailure ??= asFailure(error, resultFile.path);
    }
  }

  /** The end's own files are among them, because they exist when this is read. */
  #paths(): Record<string, string> {
    const { artifacts, resultFile } = this;
    return {
      ...artifacts?.paths,
      ...(artifacts === undefined ? {} : { result: `${artifacts.path}/result.json` }),
      ...(resultFile === undefined ? {} : { result_json: resultFile.path }),
    };
  }

  [Symbol.dispose](): void {
    this.artifacts?.[Symbol.dispose]();
    this.resultFile?.[Symbol.dispose]();
  }
}
