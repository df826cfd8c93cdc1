/** A prompt: a turn, input for the turn that runs, or a slash command. Its answer is the end of that turn. */
import { randomUUID } from "node:crypto";
import { reviewPrompt, reviewSubject, type ReviewTarget } from "@heddle/agent/review";
import {
  charsOf,
  inputFrom,
  MAX_INPUT_CHARS,
  skillInput,
  slashCommand,
  type AcpEnd,
  type AcpInput,
  type AcpParams,
} from "@heddle/dialects/acp";
import { HeddleError, imageTypeOf, ERROR_CODES, type InputPart } from "@heddle/protocol";
import { startOrSteer } from "../codex/handlers/turns.ts";
import { nextSettings } from "../codex/settings.ts";
import { RPC, RpcError } from "../rpc/peer.ts";
import { skillsFor } from "./commands.ts";
import type { AcpConnection } from "./connection.ts";
import type { AcpHandler } from "./methods.ts";
import type { AcpSession } from "./session.ts";

export const prompt: AcpHandler<"session/prompt"> = async (params, { connection, requestId }) => {
  const session = connection.session(params.sessionId);
  const end = await connection.prompting(requestId, (signal) => {
    const control = new AbortController();
    const stop = AbortSignal.any([signal, control.signal]);
    return session.cancellable(
      () => control.abort(),
      () => answered(connection, { session, params, stop }),
    );
  });
  if (end.kind === "stopped") return { result: { stopReason: end.stopReason, usage: end.usage } };
  const { code, message, details } = end.failure;
  throw new HeddleError(
    ERROR_CODES.find((known) => known === code) ?? "internal",
    message,
    details === undefined ? {} : { details },
  );
};

interface Prompting {
  readonly session: AcpSession;
  readonly params: AcpParams<"session/prompt">;
  /** The client has cancelled it, perhaps before there is a turn. */
  readonly stop: AbortSignal;
}

async function answered(connection: AcpConnection, { session, params, stop }: Prompting): Promise<AcpEnd> {
  const turnId = await begin(connection, session, params);
  const interrupt = (): void => session.interrupt(turnId);
  if (stop.aborted) interrupt();
  stop.addEventListener("abort", interrupt, { once: true });
  try {
    return await session.end(turnId);
  } finally {
    stop.removeEventListener("abort", interrupt);
  }
}

/** The id of the turn that answers. */
async function begin(
  connection: AcpConnection,
  session: AcpSession,
  { prompt: blocks }: AcpParams<"session/prompt">,
): Promise<string> {
  const { server, by } = connection;
  const command = slashCommand(blocks);
  if (command?.name === "compact") {
    const settings = await nextSettings(server, session);
    return (await server.turns.begin(() => server.heddle.as(by).compact(session.threadId, settings))).turnId;
  }
  if (command?.name === "review") return review(connection, session, command.rest);
  const skills = command === undefined ? [] : await skillsFor(server, session.workspace);
  const skill = skills.find(({ name }) => name === command?.name);
  const asked =
    command !== undefined && skill !== undefined ? skillInput(blocks, command, skill.path) : inputFrom(blocks);
  requireFitting(asked);
  return turn(connection, session, asked);
}

async function turn({ server, by }: AcpConnection, session: AcpSession, { input, context }: AcpInput): Promise<string> {
  const { threadId, workspace } = session;
  const clientId = randomUUID();
  session.owns(clientId);
  const settings = await nextSettings(server, session);
  const wanted = { input: input.map(checkedImage), context, workspace, settings, once: [], keep: undefined, clientId };
  return (await startOrSteer({ server, by }, threadId, wanted)).turnId;
}

async function review({ server, by }: AcpConnection, session: AcpSession, what: string): Promise<string> {
  const { threadId, workspace } = session;
  const instructions = what.trim() === "" ? undefined : what.trim();
  const target: ReviewTarget = instructions === undefined ? { kind: "uncommitted" } : { kind: "custom" };
  const text = await reviewPrompt(target, workspace, instructions);
  const subject = reviewSubject(target, instructions);
  const settings = await nextSettings(server, session);
  const input = [{ type: "text" as const, text }];
  const clientId = randomUUID();
  session.owns(clientId);
  const start = { thread: threadId, workspace, input, settings, task: "review", subject, clientId } as const;
  return (await server.turns.begin(() => server.heddle.as(by).startTurn(start))).turnId;
}

function requireFitting({ input, context }: AcpInput): void {
  if (input.length === 0) throw new HeddleError("prompt.empty", "the prompt is empty");
  const texts = input.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  const chars = Math.max(texts, charsOf(context));
  if (chars <= MAX_INPUT_CHARS) return;
  throw new RpcError(RPC.invalidParams, `the prompt is longer than ${MAX_INPUT_CHARS} characters`, {
    code: "usage.invalid",
    maxChars: MAX_INPUT_CHARS,
    chars,
  });
}

/** What the largest provider takes for one image. */
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;

/** What it is counts, not what it is called. */
function checkedImage(part: InputPart): InputPart {
  if (part.type !== "image") return part;
  const bytes = Buffer.from(part.base64, "base64");
  if (bytes.length > MAX_IMAGE_BYTES) throw new HeddleError("usage.invalid", "an image is larger than 20 MiB");
  const mediaType = imageTypeOf(bytes);
  if (mediaType === undefined) throw new HeddleError("usage.invalid", "an image is not PNG, JPEG, GIF or WebP");
  return { ...part, mediaType };
}
