/**
 * The table of methods: name → handler; what each takes is in the dialect. A method of the dialect without a handler does not
 * compile. A method that the original knows and Heddle does not is refused; the connection stays open.
 */
import {
  CODEX_METHODS,
  CODEX_PARAMS,
  EXPERIMENTAL_FIELDS,
  invalidParams,
  isSupported,
  unknownVariant,
  unusedParams,
  type CodexParams,
  type SupportedMethod,
} from "@heddle/dialects/codex-app-server";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { Call, Handler } from "../rpc/call.ts";
import { RPC, RpcError, type Reply } from "../rpc/peer.ts";
import * as accounts from "./handlers/accounts.ts";
import * as attachments from "./handlers/attachments.ts";
import * as command from "./handlers/command.ts";
import * as config from "./handlers/config.ts";
import * as features from "./handlers/features.ts";
import * as fileSearch from "./handlers/file-search-sessions.ts";
import { fuzzyFileSearch } from "./handlers/file-search.ts";
import * as files from "./handlers/files.ts";
import { gitDiffToRemote } from "./handlers/git-diff.ts";
import * as goals from "./handlers/goals.ts";
import * as history from "./handlers/history.ts";
import { listHooks } from "./handlers/hooks.ts";
import { initialize } from "./handlers/initialize.ts";
import * as keep from "./handlers/keep.ts";
import * as mcp from "./handlers/mcp.ts";
import { listModels } from "./handlers/models.ts";
import * as plugins from "./handlers/plugins.ts";
import * as processes from "./handlers/processes.ts";
import * as queue from "./handlers/queue.ts";
import * as read from "./handlers/read.ts";
import { startReview } from "./handlers/review.ts";
import * as sample from "./handlers/sample.ts";
import * as shell from "./handlers/shell.ts";
import * as skills from "./handlers/skills.ts";
import * as surroundings from "./handlers/surroundings.ts";
import * as threads from "./handlers/threads.ts";
import { updateTurnSettings } from "./handlers/turn-settings.ts";
import * as turns from "./handlers/turns.ts";
import { readUsage } from "./handlers/usage.ts";
import * as watch from "./handlers/watch.ts";
import { OWN_METHODS } from "./own/methods.ts";
import { unsupportedError } from "./unsupported.ts";

const HANDLERS: { readonly [Method in SupportedMethod]: Handler<Method> } = {
  initialize,
  "thread/start": threads.startThread,
  "thread/resume": threads.resumeThread,
  "thread/fork": threads.forkThread,
  "thread/list": read.listThreads,
  "thread/read": read.readThread,
  "thread/turns/list": read.listTurns,
  "thread/items/list": read.listItems,
  "thread/loaded/list": threads.listLoaded,
  "thread/unsubscribe": threads.unsubscribe,
  "thread/name/set": keep.nameThread,
  "thread/archive": keep.archiveThread,
  "thread/unarchive": keep.unarchiveThread,
  "thread/delete": keep.deleteThread,
  "thread/compact/start": turns.compactThread,
  "turn/start": turns.startTurn,
  "turn/steer": turns.steerTurn,
  "turn/interrupt": turns.interruptTurn,
  "model/list": listModels,
  "permissionProfile/list": surroundings.listProfiles,
  "skills/list": surroundings.listSkills,
  "review/start": startReview,
  "thread/shellCommand": shell.shellCommand,
  "thread/inject_items": history.injectItems,
  "thread/revert": history.revertThread,
  "thread/metadata/update": history.updateMetadata,
  "thread/settings/update": turns.updateSettings,
  "thread/goal/set": goals.setGoal,
  "thread/goal/get": goals.getGoal,
  "thread/goal/clear": goals.clearGoal,
  "thread/queue/add": queue.addQueued,
  "thread/queue/list": queue.listQueued,
  "thread/queue/update": queue.updateQueued,
  "thread/queue/reorder": queue.reorderQueued,
  "thread/queue/start": queue.startQueued,
  "thread/queue/delete": queue.deleteQueued,
  "thread/attachment/add": attachments.addAttachment,
  "thread/attachment/list": attachments.listAttachments,
  "thread/attachment/remove": attachments.removeAttachment,
  "thread/attachmentOwner/list": attachments.listAttachmentOwners,
  "turn/settings/update": updateTurnSettings,
  "thread/backgroundTerminals/list": shell.listTerminals,
  "thread/backgroundTerminals/terminate": shell.terminateTerminal,
  "thread/backgroundTerminals/clean": shell.cleanTerminals,
  "thread/sample": sample.sampleThread,
  "thread/sample/cancel": sample.cancelSample,
  "thread/search": read.searchThreads,
  "account/read": accounts.readAccount,
  getAuthStatus: accounts.readAuthStatus,
  "config/read": config.readConfig,
  "fs/readFile": files.readFile,
  "fs/writeFile": files.writeFile,
  "fs/createDirectory": files.createDirectory,
  "fs/getMetadata": files.getMetadata,
  "fs/readDirectory": files.readDirectory,
  "fs/remove": files.remove,
  "fs/copy": files.copy,
  "fs/watch": watch.watch,
  "fs/unwatch": watch.unwatch,
  "command/exec": command.execCommand,
  "command/exec/write": command.writeCommand,
  "command/exec/terminate": command.terminateCommand,
  "command/exec/resize": command.resizeCommand,
  "process/spawn": processes.spawnProcess,
  "process/writeStdin": processes.writeProcess,
  "process/kill": processes.killProcess,
  "process/resizePty": processes.resizeProcess,
  fuzzyFileSearch,
  "fuzzyFileSearch/sessionStart": fileSearch.startSession,
  "fuzzyFileSearch/sessionUpdate": fileSearch.updateSession,
  "fuzzyFileSearch/sessionStop": fileSearch.stopSession,
  gitDiffToRemote,
  "skills/extraRoots/set": skills.setSkillRoots,
  "skills/config/write": skills.writeSkillConfig,
  "plugin/list": plugins.listPlugins,
  "plugin/installed": plugins.listInstalled,
  "plugin/reconcile": plugins.reconcilePlugins,
  "plugin/read": plugins.readPlugin,
  "plugin/install": plugins.addPlugin,
  "plugin/uninstall": plugins.removePlugin,
  "hooks/list": listHooks,
  "config/value/write": config.writeConfigValue,
  "config/batchWrite": config.writeConfigBatch,
  "configRequirements/read": config.readConfigRequirements,
  "experimentalFeature/list": features.listFeatures,
  "experimentalFeature/enablement/set": features.setFeatures,
  "collaborationMode/list": surroundings.listCollaborationModes,
  "modelProvider/capabilities/read": surroundings.readProviderCapabilities,
  "mcpServerStatus/list": mcp.listMcpStatus,
  "mcpServer/tool/call": mcp.callMcpTool,
  "mcpServer/resource/read": mcp.readMcpResource,
  "mcpServer/oauth/login": mcp.loginMcpServer,
  "config/mcpServer/reload": mcp.reloadMcpServers,
  "account/login/start": accounts.startLogin,
  "account/login/cancel": accounts.cancelLogin,
  "account/logout": accounts.logout,
  "account/rateLimits/read": accounts.readRateLimits,
  "account/usage/read": readUsage,
};

/** In the order of the original: first params that cannot be read, then who calls, then what they may call. */
export async function callMethod(name: string, params: unknown, call: Call): Promise<Reply> {
  const own = OWN_METHODS.get(name);
  const known = CODEX_METHODS.get(name);
  const { client } = call.connection;
  if (own !== undefined) {
    if (client === undefined) throw notInitialized();
    return own.run(params, call).catch((error: unknown) => withoutSecrets(error, call));
  }
  if (known === undefined) throw invalid(unknownVariant(name, CODEX_METHODS.keys()));
  const carryOut = isSupported(name) ? prepare(name, params) : undefined;
  if (name !== "initialize") {
    if (client === undefined) throw notInitialized();
    if (!client.isExperimental) refuseExperimental(name, known.isExperimental, params);
  }
  if (carryOut === undefined) throw unsupportedError(name);
  const reply = await carryOut(call).catch((error: unknown) => withoutSecrets(error, call));
  return warned(reply, unusedParams(name, params), { params, connection: call.connection });
}

function notInitialized(): RpcError {
  return new RpcError(RPC.invalidRequest, "Not initialized");
}

/** What failed may quote a program, and a program its token. */
function withoutSecrets(error: unknown, { server }: Call): never {
  if (!isHeddleError(error)) throw error;
  const message = server.heddle.journal.redactor.text(error.message);
  throw new HeddleError(error.code, message, { cause: error.cause, details: error.details });
}

const OfThread = z.object({ threadId: z.string() });
const WithThread = z.object({ thread: z.object({ id: z.string() }) });

/** What was asked for and is not done must not look as if it were. */
function warned(
  reply: Reply,
  unused: readonly string[],
  { params, connection }: { readonly params: unknown } & Pick<Call, "connection">,
): Reply {
  if (unused.length === 0) return reply;
  const threadId = OfThread.safeParse(params).data?.threadId ?? WithThread.safeParse(reply.result).data?.thread.id;
  return {
    ...reply,
    after() {
      reply.after?.();
      threads.warnOfFieldsWithoutEffect(connection, threadId, unused);
    },
  };
}

function prepare<Method extends SupportedMethod>(name: Method, params: unknown): (call: Call) => Promise<Reply> {
  const parsed = CODEX_PARAMS[name].safeParse(params ?? {}, { reportInput: true });
  if (!parsed.success) throw invalid(invalidParams(parsed.error.issues));
  const handle: Handler<Method> = HANDLERS[name];
  // The schema of the same method has just made it.
  return (call) => handle(parsed.data as CodexParams<Method>, call);
}

function invalid(why: string): RpcError {
  return new RpcError(RPC.invalidRequest, `Invalid request: ${why}`);
}

function refuseExperimental(name: string, isExperimental: boolean, params: unknown): void {
  const refuse = (what: string): never => {
    throw new RpcError(RPC.invalidRequest, `${what} requires experimentalApi capability`);
  };
  if (isExperimental) refuse(name);
  if (typeof params !== "object" || params === null) return;
  const given = new Map(Object.entries(params));
  for (const field of EXPERIMENTAL_FIELDS[name] ?? []) {
    const value = given.get(field) ?? undefined;
    const isLeftOut = value === undefined || value === false || (field === "path" && value === "");
    if (!isLeftOut) refuse(`${name}.${field}`);
  }
  if (typeof given.get("approvalPolicy") === "object" && given.get("approvalPolicy") !== null) {
    refuse("askForApproval.granular");
  }
}
