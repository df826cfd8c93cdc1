/**
 * The table of the chat dialect: method → scope → handler; what each takes and answers is in the protocol. A method without
 * a row does not compile, so none can be without a scope.
 */
import { isHeddleError, PLAIN } from "@heddle/protocol";
import {
  CHAT_METHODS,
  CHAT_RPC,
  chatMethod,
  chatRpcCode,
  invalidParam,
  readParams,
  type ChatMethod,
  type ChatParams,
} from "@heddle/dialects/chat";
import type { Reply } from "../rpc/peer.ts";
import { RpcError } from "../rpc/peer.ts";
import { scopeAllows, type Scope } from "../access/principals.ts";
import type { ChatCall, ChatHandler } from "./call.ts";
import * as accounts from "./handlers/accounts.ts";
import * as catalog from "./handlers/catalog.ts";
import * as chats from "./handlers/chats.ts";
import * as events from "./handlers/events.ts";
import { searchFiles } from "./handlers/files.ts";
import * as messages from "./handlers/messages.ts";
import * as threads from "./handlers/threads.ts";

type Table = { readonly [Method in ChatMethod]: readonly [scope: Scope, handle: ChatHandler<Method>] };

export const CHAT_TABLE: Table = {
  hello: ["read", chats.hello],
  "chat.create": ["write", chats.create],
  "chat.resume": ["read", chats.resume],
  "chat.list": ["read", chats.list],
  "chat.message.send": ["write", messages.send],
  "chat.cancel": ["write", messages.cancel],
  "chat.approval.respond": ["write", messages.respond],
  // It asks a model, which costs something.
  "chat.thread.summarize": ["write", threads.summarize],
  "chat.thread.read": ["read", threads.read],
  "chat.thread.list": ["read", threads.list],
  "chat.thread.archive": ["write", threads.archive],
  "chat.thread.unarchive": ["write", threads.unarchive],
  "chat.thread.delete": ["admin", threads.remove],
  "chat.thread.fork": ["write", threads.fork],
  "chat.thread.rename": ["write", threads.rename],
  "chat.settings.update": ["write", threads.updateSettings],
  "chat.files.search": ["read", searchFiles],
  "chat.skills.list": ["read", catalog.listSkills],
  "chat.skills.config.write": ["admin", catalog.writeSkillConfig],
  "chat.model.list": ["read", catalog.listModels],
  "chat.tools.list": ["read", catalog.listTools],
  "chat.collaboration.mode.list": ["read", catalog.listModes],
  "chat.account.read": ["read", accounts.read],
  "chat.account.list": ["read", accounts.list],
  "chat.account.refresh": ["admin", accounts.refresh],
  "chat.account.login.start": ["admin", accounts.startLogin],
  "chat.account.login.poll": ["admin", accounts.pollLogin],
  "chat.account.login.cancel": ["admin", accounts.cancelLogin],
  "chat.account.logout": ["admin", accounts.logout],
  "chat.events.list": ["read", events.list],
  "events.subscribe": ["read", events.subscribe],
  "events.unsubscribe": ["read", events.unsubscribe],
};

/** The scope is checked before the params, so that a refused caller learns nothing. */
export async function callChatMethod(name: string, params: unknown, call: ChatCall): Promise<Reply> {
  const method = chatMethod(name);
  if (method === undefined) throw new RpcError(CHAT_RPC.methodNotFound, `there is no method ${name.slice(0, 100)}`);
  const [scope] = CHAT_TABLE[method];
  const { role } = call.connection.principal;
  if (!scopeAllows(role, scope)) {
    const data = { code: "door.forbidden", scope, role };
    throw new RpcError(
      CHAT_RPC.unauthorized,
      `${method} needs the scope ${scope}, which the role ${role} does not have`,
      data,
    );
  }
  try {
    return await carryOut(method, params, call);
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    throw new RpcError(chatRpcCode(error.code), error.message, { code: error.code, ...error.details });
  }
}

async function carryOut<Method extends ChatMethod>(method: Method, params: unknown, call: ChatCall): Promise<Reply> {
  const parsed = CHAT_METHODS[method].params.safeParse(readParams(params), PLAIN);
  if (!parsed.success) {
    const { message, field } = invalidParam(parsed.error.issues);
    throw new RpcError(CHAT_RPC.invalidParams, message, { code: "usage.invalid", field });
  }
  const [, handle] = CHAT_TABLE[method];
  // The schema of the same row has just made it.
  return handle(parsed.data as ChatParams<Method>, call);
}
