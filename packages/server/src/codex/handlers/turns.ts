/** Turns: begun, steered, interrupted. The run belongs to the server, whatever becomes of the client. */
import type { StartTurn } from "@heddle/agent";
import type { SettingsPatch } from "@heddle/agent/settings";
import {
  HeddleError,
  isHeddleError,
  type By,
  type ClientContext,
  type InputPart,
  type TurnSettings,
} from "@heddle/protocol";
import { approvalPolicyFrom, newTurn, sandboxFrom, type CodexParams } from "@heddle/dialects/codex-app-server";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { readInput, requireFitting } from "../input.ts";
import { profileChoice } from "../profiles.ts";
import { changesBetween, nextSettings, storeChanges } from "../settings.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";
import { caughtUp } from "./keep.ts";
import { folderOf } from "./threads.ts";

/** A turn may end or begin between two looks; more often than this it does not. */
const MAX_TRIES = 5;

export const startTurn: Handler<"turn/start"> = async (params, { server, connection }) => {
  if ((params.toolOutput ?? undefined) !== undefined) {
    throw refuse("`toolOutput` is not supported: tools of a client answer when they are called");
  }
  const loaded = requireLoaded(server, params.threadId);
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : loaded.workspace;
  const input = await readInput(params.input, workspace);
  const { threadId } = loaded;
  const clientId = params.clientUserMessageId ?? undefined;
  const before = await nextSettings(server, loaded, { clientId });
  const settings = await nextSettings(server, { threadId, workspace }, { patch: patchFrom(params), clientId });
  const { outputSchema, serviceTierForTurn: serviceTier } = params;
  const turnSettings = {
    ...settings,
    ...(outputSchema === undefined || outputSchema === null ? {} : { outputSchema }),
    ...(typeof serviceTier === "string" ? { serviceTier } : {}),
  };
  const once = typeof serviceTier === "string" ? ["serviceTier"] : [];
  const context = contextFrom(params);
  const reply = await heldBack(connection, threadId, async () => {
    const ceiling = params.config?.ceiling ?? undefined;
    const keep = ceiling === undefined ? undefined : { ceiling };
    const wanted = { input, context, workspace, settings: turnSettings, once, keep, clientId };
    const { turnId, isSteered } = await startOrSteer({ server, by: connection.by }, threadId, wanted);
    // The turn that runs keeps what it has; the next one has what was asked for with this input.
    const moved = workspace === loaded.workspace ? {} : { cwd: workspace };
    const changes = { ...changesBetween(before, settings), ...moved };
    if (isSteered) await storeChanges(server, threadId, { changes, by: connection.by });
    return { turn: newTurn(turnId) };
  });
  return reply;
};

/** Every request carries it from then on. */
const MAX_CONTEXT_CHARS = 1024 * 1024;

function contextFrom({ additionalContext }: Pick<CodexParams<"turn/start">, "additionalContext">): ClientContext[] {
  const given = Object.entries(additionalContext ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const context = given.map(([name, { kind, value }]) => ({ name, kind, text: value }));
  if (JSON.stringify(context).length <= MAX_CONTEXT_CHARS) return context;
  throw refuse(`additional context is larger than ${MAX_CONTEXT_CHARS} characters`);
}

export interface Said {
  readonly input: readonly InputPart[];
  readonly context: readonly ClientContext[];
  readonly clientId: string | undefined;
}

interface Asked extends By {
  readonly server: ServerContext;
}

export interface Wanted extends Said {
  readonly workspace: string;
  readonly once: readonly string[];
  readonly keep: StartTurn["keep"];
  readonly settings: TurnSettings;
}

/** Input for a thread with a running turn is added to that turn. */
export async function startOrSteer(
  { server, by }: Asked,
  threadId: string,
  wanted: Wanted,
): Promise<{ readonly turnId: string; readonly isSteered: boolean }> {
  const acts = server.heddle.as(by);
  const { input, context, workspace, settings, once, keep, clientId } = wanted;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    try {
      const asked = { thread: threadId, workspace, input, context, settings, once, keep };
      const start = { ...asked, ...(clientId === undefined ? {} : { clientId }) };
      const { turnId } = await server.turns.begin(() => acts.startTurn(start));
      return { turnId, isSteered: false };
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "turn.active") throw error;
    }
    const running = await openTurn(server, threadId);
    if (running !== undefined && (await steered({ server, by }, running, wanted)))
      return { turnId: running, isSteered: true };
  }
  throw new HeddleError("store.busy", `thread ${threadId} is being changed by another process; try again`);
}

/** False when the turn has ended meanwhile. */
async function steered({ server, by }: Asked, turnId: string, { input, context, clientId }: Said): Promise<boolean> {
  try {
    await server.heddle.as(by).steer(turnId, input, { context, clientId });
    return true;
  } catch (error) {
    if (isHeddleError(error) && error.code === "turn.not-found") return false;
    throw error;
  }
}

export const steerTurn: Handler<"turn/steer"> = async (params, { server, connection }) => {
  const { threadId, workspace } = requireLoaded(server, params.threadId);
  const clientId = params.clientUserMessageId ?? undefined;
  requireFitting(params.input);
  return heldBack(connection, threadId, async () => {
    const running = await openTurn(server, threadId);
    if (running === undefined) throw refuse("no active turn to steer");
    if (running !== params.expectedTurnId) {
      throw refuse(`expected active turn id \`${params.expectedTurnId}\` but found \`${running}\``);
    }
    const said = { input: await readInput(params.input, workspace), context: contextFrom(params), clientId };
    if (!(await steered({ server, by: connection.by }, running, said))) throw refuse("no active turn to steer");
    return { turnId: running };
  });
};

export const interruptTurn: Handler<"turn/interrupt"> = async (params, { server, connection }) => {
  const { threadId } = requireLoaded(server, params.threadId);
  return heldBack(connection, threadId, async () => {
    const running = await openTurn(server, threadId);
    if (running === undefined) throw refuse("no active turn to interrupt");
    if (running !== params.turnId) throw refuse(`expected active turn id ${params.turnId} but found ${running}`);
    const reason = { code: "turn.interrupted", message: "interrupted by the client" } as const;
    await server.heddle.as(connection.by).interrupt(running, reason);
    return {};
  });
};

export const compactThread: Handler<"thread/compact/start"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const settings = await nextSettings(server, loaded);
  return heldBack(connection, threadId, async () => {
    await server.turns.begin(() => server.heddle.as(connection.by).compact(threadId, settings));
    return {};
  });
};

export async function openTurn({ heddle }: ServerContext, threadId: string): Promise<string | undefined> {
  const last = await heddle.journal.threads.lastTurn(threadId);
  return last?.status === "open" ? last.id : undefined;
}

function patchFrom(params: Omit<CodexParams<"thread/settings/update">, "threadId" | "cwd">): SettingsPatch {
  const { approvalPolicy, sandboxPolicy, permissions, collaborationMode } = params;
  const { model = params.model, reasoning_effort: effort = params.effort } = collaborationMode?.settings ?? {};
  if (sandboxPolicy?.type === "externalSandbox") {
    throw new HeddleError("usage.invalid", "a sandbox that another program holds is not supported");
  }
  return {
    ...profileChoice(permissions, { field: "sandboxPolicy", value: sandboxPolicy }),
    ...(sandboxPolicy === undefined || sandboxPolicy === null ? {} : sandboxFrom(sandboxPolicy)),
    runner: params.config?.runner ?? undefined,
    envelope: params.config?.envelope ?? undefined,
    ceiling: params.config?.ceiling ?? undefined,
    model: model ?? undefined,
    effort: effort ?? undefined,
    summary: params.summary ?? undefined,
    // null takes the tier away.
    serviceTier: params.serviceTier === null ? "default" : params.serviceTier,
    personality: params.personality ?? undefined,
    disabledPlugins: disabledPluginsFrom(params),
    mode: collaborationMode?.mode,
    modeInstructions: collaborationMode?.settings.developer_instructions ?? undefined,
    approvalPolicy:
      approvalPolicy === undefined || approvalPolicy === null ? undefined : approvalPolicyFrom(approvalPolicy),
  };
}

/** Every turn stores them. */
const MAX_DISABLED_PLUGINS = 200;

function disabledPluginsFrom({ disabledPluginIds }: Pick<CodexParams<"turn/start">, "disabledPluginIds">) {
  if ((disabledPluginIds?.length ?? 0) <= MAX_DISABLED_PLUGINS) return disabledPluginIds ?? undefined;
  throw refuse(`at most ${MAX_DISABLED_PLUGINS} plugins can be disabled for a thread`);
}

/** Changed between turns; a running turn is not affected. */
export const updateSettings: Handler<"thread/settings/update"> = async (params, { server, connection }) => {
  const loaded = requireLoaded(server, params.threadId);
  const { threadId } = loaded;
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : loaded.workspace;
  const before = await nextSettings(server, loaded);
  const settings = await nextSettings(server, { threadId, workspace }, { patch: patchFrom(params) });
  const moved = workspace === loaded.workspace ? {} : { cwd: workspace };
  const changes = { ...changesBetween(before, settings), ...moved };
  return heldBack(connection, threadId, async () => {
    if (await storeChanges(server, threadId, { changes, by: connection.by })) await caughtUp(server);
    return {};
  });
};
