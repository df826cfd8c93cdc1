import { expect, test } from "vitest";
import type { Answered } from "../rpc/peer.ts";
import { OpenRequests } from "./open-requests.ts";
import type { Follower } from "./subscribe.ts";

/** A client that says what the test has it say. */
class Asked implements Follower {
  readonly by = "user:owner";
  readonly answers: ((answer: Answered) => void)[] = [];

  tell(): void {}

  sendDelta(): void {}

  ask(_id: unknown, _request: unknown, done: (answer: Answered) => void): void {
    this.answers.push(done);
  }

  withdraw(): void {
    this.answers.length = 0;
  }

  says(answer: Answered): void {
    this.answers.at(-1)?.(answer);
  }
}

const REFUSAL: Answered = { kind: "error", message: "unknown method" };

function openRequest() {
  const [one, other] = [new Asked(), new Asked()];
  const followers = new Set<Follower>([one, other]);
  const stored: Answered[] = [];
  const requests = new OpenRequests({ threadId: "t", followers, nextRequestId: () => 0, log: () => undefined });
  requests.open("question", {
    request: { method: "item/permissions/requestApproval", params: {} },
    isAnnouncedWhenClosed: true,
    answered: async (answer) => void stored.push(answer),
  });
  const leave = (follower: Asked): void => {
    followers.delete(follower);
    requests.left(follower);
  };
  return { one, other, stored, leave, [Symbol.dispose]: () => requests[Symbol.dispose]() };
}

test("a question that one client refuses waits for the other, and is refused when that one leaves", () => {
  using question = openRequest();
  question.one.says(REFUSAL);
  expect(question.stored).toEqual([]);
  question.leave(question.other);
  expect(question.stored).toEqual([REFUSAL]);
});

test("a question stays open while nobody follows, whoever refused it before leaving", () => {
  using question = openRequest();
  question.one.says(REFUSAL);
  question.leave(question.one);
  question.leave(question.other);
  expect(question.stored).toEqual([]);
});

test("a question that all refuse is refused, and the first answer of any counts", () => {
  using refused = openRequest();
  for (const follower of [refused.one, refused.other]) follower.says(REFUSAL);
  expect(refused.stored).toEqual([REFUSAL]);
  using answered = openRequest();
  answered.one.says(REFUSAL);
  answered.other.says({ kind: "result", result: {} });
  expect(answered.stored).toEqual([{ kind: "result", result: {} }]);
});
