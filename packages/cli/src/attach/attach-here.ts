/**
 * A thread of Heddle's own loop at a terminal: what a person types is the next input, or goes to the turn that runs; questions
 * are answered by a letter. Everything that happens in the thread is printed, whichever door it comes from.
 *
 *   idle ──line──▶ turn runs ──▶ its end ──▶ idle         a line meanwhile: more input, or the answer to its question
 *    │                │ Ctrl-C: interrupted, once
 *    └── Ctrl-C, Ctrl-D, /quit ──▶ left; a turn that this process runs is interrupted first
 */
import { createInterface, type Interface } from "node:readline";
import type { Heddle, TurnHandle } from "@heddle/agent";
import type { SettingsPatch } from "@heddle/agent/settings";
import type { ThreadRow } from "@heddle/journal";
import { isHeddleError, OWNER, reasonOf, visibleLine, type StoredEvent } from "@heddle/protocol";
import type { SettingsSource } from "@heddle/server";
import { createHumanPrinter } from "../print/human.ts";
import type { Output, Printer } from "../print/output.ts";
import { openScreen, quoted } from "../print/screen.ts";
import { styleFor } from "../print/style.ts";
import type { Stop } from "../stop.ts";
import { answerOf, hintOf, type OpenQuestion } from "./answers.ts";

const HELP = [
  "what you type is the next input; while a turn runs it is given to it; a line that ends with \\ continues in the next one",
  "questions: y allows once, a for the whole thread, n declines",
  "/status      the model, the sandbox and what the thread has used",
  "/interrupt   stops the turn, as Ctrl-C does",
  "/quit        leaves, as Ctrl-D does; the thread stays",
].join("\n");

export interface AttachHere {
  readonly heddle: Heddle;
  readonly settings: Pick<SettingsSource, "resolve">;
  readonly thread: ThreadRow;
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  readonly stop: Stop;
  /** In place of what the thread has: it may have been begun where nobody could be asked. */
  readonly patch: SettingsPatch;
}

export async function attachHere(options: AttachHere): Promise<void> {
  const { heddle, thread } = options;
  const last = await heddle.journal.threads.lastTurn(thread.id);
  const loop = new Loop(options);
  await loop.run((last?.admittedVersion ?? 1) - 1);
}

class Loop {
  readonly #options: AttachHere;
  readonly #readline: Interface;
  readonly #out: Output;
  readonly #printer: Printer;
  readonly #left = new AbortController();
  /** The open turn, whoever began it. */
  #turnId: string | undefined;
  /** Those that this process runs. */
  readonly #own = new Map<string, TurnHandle>();
  /** Of the open turn, oldest first. */
  readonly #questions = new Map<string, OpenQuestion>();
  #isInterrupted = false;
  #hasHeader = false;
  #isPrompting = false;
  #begun = "";
  /** Lines are handled one after the other. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: AttachHere) {
    this.#options = options;
    const screen = openScreen(process.stdout);
    const write = async (text: string): Promise<void> => {
      this.#hidePrompt();
      await screen.write(text);
    };
    this.#out = {
      isTerminal: screen.isTerminal,
      get isClosed() {
        return screen.isClosed;
      },
      get isBehind() {
        return screen.isBehind;
      },
      write,
    };
    this.#printer = createHumanPrinter({
      err: this.#out,
      style: styleFor("auto", screen.isTerminal, options.env),
      version: options.version,
      workspace: options.thread.workspace,
      // How to go on is known here.
      isKept: false,
    });
    this.#readline = createInterface({ input: process.stdin, output: process.stdout, terminal: true, prompt: "> " });
  }

  async run(after: number): Promise<void> {
    const { heddle, thread, stop } = this.#options;
    const rl = this.#readline;
    rl.on("line", (line) => {
      this.#isPrompting = false;
      this.#work = this.#work.then(() => this.#line(line)).catch((error: unknown) => this.#tell(reasonOf(error)));
    });
    rl.on("SIGINT", () => this.#interruptOrLeave());
    rl.on("close", () => this.#left.abort());
    stop.signal.addEventListener("abort", () => this.#left.abort(), { once: true });
    using _deltas = heddle.onDelta(thread.id, (delta) => this.#printer.delta(delta));
    const following = this.#follow(after);
    await this.#tell(`thread ${thread.id}\n${visibleLine(thread.workspace)}\n/help shows what can be typed`);
    this.#prompt();
    await new Promise<void>((resolve) => {
      if (this.#left.signal.aborted) resolve();
      this.#left.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    rl.close();
    this.#hidePrompt();
    await this.#end();
    await following;
  }

  /** What this process runs ends with it. */
  async #end(): Promise<void> {
    const { heddle } = this.#options;
    await this.#work;
    const message = "the user has left the thread";
    for (const [turnId, { done }] of this.#own) {
      await heddle.as(OWNER).interrupt(turnId, { code: "turn.interrupted", message }).catch(unlessEnded);
      await done.catch(() => undefined);
    }
  }

  async #follow(after: number): Promise<void> {
    const { heddle, thread } = this.#options;
    const { signal } = this.#left;
    for await (const event of heddle.journal.tail({ stream: thread.id, after, signal })) {
      this.#note(event);
      if (this.#isShown(event)) await this.#printer.event(event);
      if (event.body.type === "turn.completed" || event.body.type.startsWith("approval.")) this.#prompt();
    }
  }

  #note({ body }: StoredEvent): void {
    if (body.type === "turn.admitted") {
      this.#turnId = body.turnId;
      this.#isInterrupted = false;
    } else if (body.type === "turn.completed") {
      if (this.#turnId === body.turnId) this.#turnId = undefined;
      this.#own.delete(body.turnId);
      this.#questions.clear();
    } else if (body.type === "approval.requested") {
      const { approvalId, question } = body;
      this.#questions.set(approvalId, { approvalId, question, answers: {} });
    } else if (body.type === "approval.resolved") this.#questions.delete(body.approvalId);
  }

  /** The header once; of later turns only what was said to begin them. */
  #isShown({ body }: StoredEvent): boolean {
    if (body.type !== "turn.admitted") return true;
    const isFirst = !this.#hasHeader;
    this.#hasHeader = true;
    return isFirst;
  }

  get #question(): OpenQuestion | undefined {
    return this.#questions.values().next().value;
  }

  #prompt(): void {
    if (this.#left.signal.aborted) return;
    const question = this.#question;
    // What is typed while a turn runs stands where it is typed.
    if (question === undefined && this.#turnId !== undefined) return;
    this.#hidePrompt();
    this.#readline.setPrompt(question === undefined ? "> " : `${hintOf(question)} > `);
    this.#readline.prompt(true);
    this.#isPrompting = true;
  }

  #hidePrompt(): void {
    if (!this.#isPrompting) return;
    this.#isPrompting = false;
    process.stdout.write("\r\u001b[K");
  }

  async #tell(text: string): Promise<void> {
    await this.#printer.notice(text);
    this.#prompt();
  }

  async #line(typed: string): Promise<void> {
    if (typed.endsWith("\\")) {
      this.#begun += `${typed.slice(0, -1)}\n`;
      return this.#prompt();
    }
    const text = `${this.#begun}${typed}`.trim();
    this.#begun = "";
    if (text === "") return this.#prompt();
    if (text.startsWith("/")) return this.#command(text);
    const question = this.#question;
    if (question !== undefined) return this.#answer(question, text);
    if (this.#turnId !== undefined) return this.#steer(this.#turnId, text);
    return this.#begin(text);
  }

  async #command(text: string): Promise<void> {
    switch (text) {
      case "/help":
        await this.#out.write(`${HELP}\n`);
        return this.#prompt();
      case "/status":
        await this.#out.write(`${await this.#status()}\n`);
        return this.#prompt();
      case "/interrupt":
        return this.#turnId === undefined ? this.#tell("no turn runs") : this.#interrupt(this.#turnId);
      case "/quit":
      case "/exit":
        return this.#left.abort();
      default:
        return this.#tell(`there is no command ${visibleLine(text)}; /help shows them`);
    }
  }

  async #status(): Promise<string> {
    const { heddle, thread } = this.#options;
    const row = (await heddle.journal.threads.get(thread.id)) ?? thread;
    const { model, provider, envelope, sandboxMode } = await this.#settings();
    const { inputTokens, outputTokens } = row.usage;
    return [
      `thread   ${row.id}, ${row.turnCount} turns, ${inputTokens} tokens in, ${outputTokens} out`,
      `folder   ${visibleLine(row.workspace)}`,
      `model    ${visibleLine(`${provider}/${model}`)}`,
      `sandbox  ${visibleLine(envelope ?? sandboxMode)}`,
      `now      ${this.#turnId === undefined ? "idle" : `turn ${this.#turnId} runs`}`,
    ].join("\n");
  }

  async #settings() {
    const { heddle, settings, thread, patch } = this.#options;
    const stored = await heddle.storedSettings(thread.id);
    return settings.resolve({ workspace: stored.workspace, stored, patch });
  }

  async #begin(text: string): Promise<void> {
    const { heddle, thread } = this.#options;
    const input = [{ type: "text" as const, text }];
    const handle = await heddle.as(OWNER).startTurn({ thread: thread.id, input, settings: await this.#settings() });
    this.#own.set(handle.turnId, handle);
    handle.done.catch((error: unknown) => this.#tell(reasonOf(error)));
  }

  async #steer(turnId: string, text: string): Promise<void> {
    await this.#options.heddle.as(OWNER).steer(turnId, [{ type: "text", text }]);
  }

  async #answer(question: OpenQuestion, text: string): Promise<void> {
    const given = answerOf(question, text);
    if (given.kind === "unclear") {
      await this.#out.write(`${quoted(given.message).join("\n")}\n`);
      return this.#prompt();
    }
    if (given.kind === "more") {
      this.#questions.set(question.approvalId, given.question);
      return this.#prompt();
    }
    const { approvalId } = question;
    const { heddle, thread } = this.#options;
    this.#questions.delete(approvalId);
    await heddle.as(OWNER).answer({ threadId: thread.id, approvalId, ...given.answer });
  }

  #interruptOrLeave(): void {
    const turnId = this.#turnId;
    if (turnId === undefined || this.#isInterrupted) return this.#left.abort();
    this.#work = this.#work.then(() => this.#interrupt(turnId)).catch((error: unknown) => this.#tell(reasonOf(error)));
  }

  async #interrupt(turnId: string): Promise<void> {
    this.#isInterrupted = true;
    const reason = { code: "turn.interrupted", message: "interrupted by the user at the terminal" } as const;
    await this.#options.heddle.as(OWNER).interrupt(turnId, reason).catch(unlessEnded);
  }
}

function unlessEnded(error: unknown): void {
  if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
}
