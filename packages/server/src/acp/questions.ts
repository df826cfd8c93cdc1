/** Questions of a session: put to its client as requests, withdrawn when another door has answered them. */
import { answerFrom, permissionRequest, type AcpClient, type AcpOutgoing } from "@heddle/dialects/acp";
import { isHeddleError, reasonOf, type ApprovalAnswer, type Author } from "@heddle/protocol";
import type { Answered, RequestId } from "../rpc/peer.ts";
import type { AcpConnection } from "./connection.ts";

type Question = Extract<AcpOutgoing, { kind: "ask" }>;

export interface AcpQuestionsOptions {
  readonly connection: AcpConnection;
  readonly client: AcpClient;
  readonly threadId: string;
}

export class AcpQuestions implements Disposable {
  readonly #options: AcpQuestionsOptions;
  /** By the approval; undefined: it has not been put yet. */
  readonly #open = new Map<string, RequestId | undefined>();
  /** Until the client knows the session. */
  #held: Question[] | undefined = [];

  constructor(options: AcpQuestionsOptions) {
    this.#options = options;
  }

  open(question: Question): void {
    this.#open.set(question.approvalId, undefined);
    if (this.#held === undefined) this.#put(question);
    else this.#held.push(question);
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const question of held) if (this.#open.has(question.approvalId)) this.#put(question);
  }

  /** The journal has an answer. */
  close(approvalId: string): void {
    const requestId = this.#open.get(approvalId);
    this.#open.delete(approvalId);
    if (requestId !== undefined) this.#options.connection.withdraw(requestId);
  }

  [Symbol.dispose](): void {
    for (const approvalId of this.#open.keys()) this.close(approvalId);
  }

  #put(question: Question): void {
    const { connection, client, threadId } = this.#options;
    const { approvalId } = question;
    const request = permissionRequest(threadId, question, client);
    if (request === undefined) {
      const reason = "the user's editor cannot show this question; ask it in your answer instead";
      return this.#store(approvalId, { decision: "decline", reason }, "system");
    }
    const id = connection.ask(request, (answer) => this.#answered(question, answer));
    if (this.#open.has(approvalId)) this.#open.set(approvalId, id);
  }

  #answered({ approvalId, question }: Question, answer: Answered): void {
    // `gone`: it stays open for the next client.
    if (answer.kind === "gone" || !this.#open.has(approvalId)) return;
    // Answered here, so nothing is withdrawn.
    this.#open.set(approvalId, undefined);
    const given: ApprovalAnswer =
      answer.kind === "result"
        ? answerFrom(answer.result, question)
        : { decision: "decline", reason: `the user's editor could not ask: ${answer.message}` };
    this.#store(approvalId, given, this.#options.connection.by);
  }

  #store(approvalId: string, given: ApprovalAnswer, by: Author): void {
    const { connection, threadId } = this.#options;
    const { heddle, log } = connection.server;
    heddle
      .as(by)
      .answer({ threadId, approvalId, ...given })
      .catch((error: unknown) => {
        // The first answer counts.
        if (isHeddleError(error) && error.code === "approval.already-resolved") return;
        log(`an answer could not be stored: ${reasonOf(error)}`);
      });
  }
}
