/** What followers are asked: questions and calls of their tools, and how their answers come into the journal. */
import { answerClientCall, type Heddle } from "@heddle/agent";
import { isHeddleError, type Author } from "@heddle/protocol";
import { answerFrom, clientAnswerFrom, type Outgoing } from "@heddle/dialects/codex-app-server";
import type { FollowerRequest } from "./open-requests.ts";

type OutgoingOf<Kind extends Outgoing["kind"]> = Extract<Outgoing, { kind: Kind }>;

/** Stays open until it is answered; when every follower refuses, it is declined. */
export function questionFor(heddle: Heddle, threadId: string, out: OutgoingOf<"ask">): FollowerRequest {
  const { approvalId, question, request } = out;
  return {
    request,
    isAnnouncedWhenClosed: true,
    async answered(answer, by) {
      const given = answer.kind === "result" ? answerFrom(answer.result, question) : { decision: "decline" as const };
      try {
        await heddle.as(by).answer({ threadId, approvalId, ...given });
      } catch (error) {
        // The first answer counts; the others are sent `serverRequest/resolved`.
        if (!isHeddleError(error) || error.code !== "approval.already-resolved") throw error;
      }
    },
  };
}

const MAX_ANSWER_CHARS = 4 * 1024 * 1024;

/** A call that nobody answers fails after a while: the model waits for it. */
export function callFor({ journal }: Heddle, threadId: string, out: OutgoingOf<"call">): FollowerRequest {
  const { turnId, itemId, request } = out;
  const failed = (message: string, by: Author): Promise<void> =>
    answerClientCall(journal, { threadId, turnId, itemId, content: [], failure: { code: "tool.failed", message }, by });
  return {
    request,
    isAnnouncedWhenClosed: false,
    async answered(answer, by) {
      if (answer.kind === "error") return failed(`the client refused the call: ${answer.message}`, by);
      if (JSON.stringify(answer.result).length > MAX_ANSWER_CHARS) {
        return failed("the answer of the client is larger than 4 MiB", by);
      }
      const { content, failure } = clientAnswerFrom(answer.result);
      const failing = failure === undefined ? {} : { failure: { code: "tool.failed", message: failure } };
      return answerClientCall(journal, { threadId, turnId, itemId, content, ...failing, by });
    },
    abandoned: () => failed("no client is connected that could run the tool", "system"),
  };
}
