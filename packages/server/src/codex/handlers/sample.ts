/** `thread/sample`: one question outside the conversation, until it is answered, cancelled or disconnected. */
import { HeddleError } from "@heddle/protocol";
import type { Handler } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import type { RequestId } from "../../rpc/peer.ts";
import { nextSettings } from "../settings.ts";
import { refuse, requireThreadId } from "../thread-facts.ts";

const MAX_RUNNING = 16;
/** That of the original. */
const MAX_PROMPT_BYTES = 4000;

const running = new WeakMap<Connection, Map<RequestId, AbortController>>();

export const sampleThread: Handler<"thread/sample"> = async (params, { server, connection, requestId }) => {
  const { expectedTurnId, prompt, effort } = params;
  const loaded = server.threads.get(requireThreadId(params.threadId));
  if (loaded === undefined) throw refuse("thread/sample requires a loaded source");
  const isPrompt = prompt.trim() !== "" && Buffer.byteLength(prompt) <= MAX_PROMPT_BYTES;
  if (expectedTurnId === "" || !isPrompt) {
    throw refuse(`thread/sample requires expectedTurnId and a prompt of at most ${MAX_PROMPT_BYTES} bytes`);
  }
  const settings = await nextSettings(server, loaded, { patch: { effort: effort ?? undefined } });
  const own = running.get(connection) ?? new Map<RequestId, AbortController>();
  running.set(connection, own);
  if (own.has(requestId)) throw refuse(`a sample with the request id ${JSON.stringify(requestId)} is running`);
  if (own.size >= MAX_RUNNING) throw refuse(`a connection may run ${MAX_RUNNING} samples at once`);

  const { threadId } = loaded;
  const control = new AbortController();
  own.set(requestId, control);
  const done = server.heddle.sample({ threadId, expectedTurnId, prompt, settings }, control.signal);
  const forget = connection.ends.add({
    async [Symbol.asyncDispose]() {
      control.abort(new HeddleError("turn.interrupted", "the connection has ended"));
      await done.catch(() => undefined);
    },
  });
  try {
    const { responseId, text = null, usage } = await done;
    const { inputTokens = null, cachedInputTokens = null, outputTokens = null } = usage ?? {};
    return {
      result: { responseId, sourceTurnId: expectedTurnId, text, inputTokens, cachedInputTokens, outputTokens },
    };
  } finally {
    own.delete(requestId);
    forget();
  }
};

/** Of the same connection; one that has ended, or never was, needs no cancel. */
export const cancelSample: Handler<"thread/sample/cancel"> = async ({ requestId }, { connection }) => {
  running.get(connection)?.get(requestId)?.abort(new HeddleError("turn.interrupted", "sample canceled"));
  return { result: {} };
};
