/** A review: in the thread itself, or in a fork of it that has nothing else to do. */
import { reviewPrompt, reviewSubject, type ReviewTarget } from "@heddle/agent/review";
import { appServerOrigin, newTurn, type CodexParams } from "@heddle/dialects/codex-app-server";
import type { Call, Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import type { LoadedThread } from "../loaded.ts";
import { nextSettings } from "../settings.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

export const startReview: Handler<"review/start"> = async (params, call) => {
  const { server } = call;
  const asked = requireLoaded(server, params.threadId);
  const { target, instructions } = targetOf(params.target);
  const prompt = await reviewPrompt(target, asked.workspace, instructions);
  const subject = reviewSubject(target, instructions);
  const isDetached = params.delivery === "detached";
  const settings = await nextSettings(server, asked);
  return heldBack(call.connection, isDetached ? undefined : asked.threadId, async () => {
    const { threadId, workspace } = isDetached ? await server.news.begin(detached(asked, call)) : asked;
    const input = [{ type: "text" as const, text: prompt }];
    const start = { thread: threadId, workspace, input, settings, task: "review", subject } as const;
    const { turnId } = await server.turns.begin(() => server.heddle.as(call.connection.by).startTurn(start));
    return { turn: { ...newTurn(turnId), items: [label(turnId, subject)] }, reviewThreadId: threadId };
  });
};

/** The client that asks for the review follows it. */
async function detached(asked: LoadedThread, { server, connection }: Call): Promise<LoadedThread> {
  const origin = appServerOrigin(connection.client?.name ?? "");
  const { workspace, isEphemeral } = asked;
  const ephemeral = isEphemeral ? { isEphemeral: true as const } : {};
  const fork = { threadId: asked.threadId, origin, workspace, ...ephemeral };
  const threadId = await server.heddle.as(connection.by).forkThread(fork);
  const loaded = server.threads.load({ threadId, workspace, isEphemeral });
  (await server.threads.feed(threadId)).add(connection);
  return loaded;
}

function label(turnId: string, subject: string): object {
  const content = [{ type: "text", text: subject, text_elements: [] }];
  return { type: "userMessage", id: turnId, clientId: null, content, startedAtMs: null, completedAtMs: null };
}

function targetOf(target: CodexParams<"review/start">["target"]): {
  readonly target: ReviewTarget;
  readonly instructions?: string;
} {
  switch (target.type) {
    case "uncommittedChanges":
      return { target: { kind: "uncommitted" } };
    case "baseBranch": {
      if (target.branch.trim() === "") throw refuse("branch must not be empty");
      return { target: { kind: "base", branch: target.branch.trim() } };
    }
    case "commit": {
      if (target.sha.trim() === "") throw refuse("sha must not be empty");
      return { target: { kind: "commit", commit: target.sha.trim(), title: target.title ?? undefined } };
    }
    case "custom": {
      if (target.instructions.trim() === "") throw refuse("instructions must not be empty");
      return { target: { kind: "custom" }, instructions: target.instructions.trim() };
    }
  }
}
