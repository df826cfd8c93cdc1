/** What clients send, method by method. Keys may come in camelCase too (`readParams`). */
import { z } from "zod";
import { Permissions, UserAnswers } from "@heddle/protocol";
import { UserInput } from "../codex-app-server/input.ts";
import { ChatApprovalPolicy, ChatEffort, ChatSettings, ChatSettingsChange, CollaborationMode } from "./settings.ts";

const id = z.string().min(1).max(200);
const path = z.string().min(1).max(4096);
const seq = z.int().min(0);
const limit = z.int().min(1).max(1000);
const Chat = { chat_id: id, thread_id: id.optional() };

/** One of two fields must be given. */
function needs(first: string, second: string) {
  const isGiven = (given: Readonly<Record<string, unknown>>) =>
    given[first] !== undefined || given[second] !== undefined;
  return [isGiven, { message: "is missing", path: [first] }] as [typeof isGiven, { message: string; path: string[] }];
}

export const NoParams = z.object({});
export const ChatParams = z.object(Chat);

export const HelloParams = z.object({
  protocol: z
    .object({ min: z.int().min(0), max: z.int().min(0) })
    .refine(({ min, max }) => min <= max, "min is above max"),
  client_id: z.string().max(200).optional(),
  capabilities: z.array(z.string().max(200)).max(100).optional(),
});

export const CreateParams = z.object({
  settings: ChatSettings.optional(),
  cwd: path.optional(),
  title: z.string().max(200).optional(),
  client_id: id.optional(),
  client_chat_id: id.nullish().meta({ description: "The same id again is the same chat" }),
});

export const ResumeParams = z.object({ ...Chat, after_seq: seq.optional() });

export const SendParams = z.object({
  chat_id: id,
  message: z.union([z.string().min(1), z.array(UserInput).min(1).max(1000)]),
  model: z.string().min(1).max(256).nullish(),
  effort: ChatEffort.nullish(),
  approval_policy: ChatApprovalPolicy.nullish(),
  collaboration_mode: CollaborationMode.nullish(),
  inject: z.boolean().nullish().meta({ description: "Add it to the turn that runs; without one it begins a turn" }),
  client_message_id: id.nullish().meta({ description: "The same id again is the same message" }),
});

export const CancelParams = z.object({ chat_id: id, turn_id: id.optional() });

const requestId = z.union([id, z.int().min(0)]);
const ChatDecision = z.enum(["accept", "accept_for_session", "decline", "cancel"]);
export const ApprovalParams = z
  .object({
    codex_request_id: requestId.optional(),
    request_id: requestId.optional(),
    chat_id: id.optional(),
    decision: ChatDecision,
    note: z.string().max(2000).optional(),
    answers: UserAnswers.optional().meta({ description: "To questions of the agent, by their ids" }),
    content: z.record(z.string(), z.unknown()).optional().meta({ description: "To the question of an MCP server" }),
    granted: Permissions.optional().meta({
      description: "Of a permission request: grant only these; absent: all of it",
    }),
  })
  .refine(...needs("request_id", "codex_request_id"));

export const ChatStatus = z.enum(["active", "inactive", "exited", "archived"]);
export const ListParams = z.object({ status: ChatStatus.optional(), limit: limit.optional(), cursor: id.optional() });

export const ThreadReadParams = z
  .object({
    chat_id: id.optional(),
    thread_id: id.optional(),
    include_turns: z.boolean().optional(),
    limit: limit.optional(),
    before_turn: id.optional(),
  })
  .refine(...needs("chat_id", "thread_id"));

export const ForkParams = z.object({ ...Chat, at_turn: id.optional() });
export const RenameParams = z
  .object({ ...Chat, title: z.string().min(1).max(200).optional(), name: z.string().min(1).max(200).optional() })
  .refine(...needs("title", "name"));

export const SettingsUpdateParams = z.object({ chat_id: id, settings: ChatSettingsChange });

export const FilesSearchParams = z.object({
  chat_id: id,
  query: z.string().max(1000),
  limit: z.int().min(1).optional().meta({ description: "Default 40, at most 200" }),
  base_path: path.optional(),
});

export const SkillsParams = z.object({ chat_id: id.optional() });
export const SkillsConfigParams = z
  .object({ path: path.optional(), name: id.optional(), enabled: z.boolean() })
  .refine(...needs("path", "name"));

export const ModelListParams = z.object({ provider: id.optional(), refresh: z.boolean().optional() });
export const ToolsListParams = z.object({ channel: z.string().max(64).optional(), chat_id: id.optional() });

const Account = { provider: id, profile: id.optional() };
export const AccountReadParams = z.object({ provider: id.optional(), validate: z.boolean().optional() });
export const AccountParams = z.object(Account);
export const LoginStartParams = z.object({
  ...Account,
  method: z.enum(["device", "browser", "api_key", "vendor_cli"]).optional(),
  api_key: z.string().min(1).max(8192).optional(),
});
const Login = { login_id: id.optional(), session: z.looseObject({ login_id: id }).optional() };
export const LoginPollParams = z.object({ ...Login, provider: id.optional() }).refine(...needs("login_id", "session"));

export const EventsListParams = z.object({ chat_id: id, after_seq: seq, limit: limit.optional() });
export const SubscribeParams = z.object({
  topic: z
    .string()
    .max(200)
    .regex(/^(\*|[a-z]+(\.[a-z]+)*(\.\*)?)$/, "must be a topic, a beginning with .*, or *"),
  after: z.record(id, seq).optional().meta({ description: "Chats whose events after this number are sent first" }),
});
export const UnsubscribeParams = z.object({ subscription_id: id });

/** Objects whose keys are converted as well. */
const NESTED = ["settings", "session"];

/** Keys in snake_case, as in the schemas; of a key in both forms the first one counts. */
export function readParams(params: unknown, isTop = true): unknown {
  if (typeof params !== "object" || params === null || Array.isArray(params)) return params ?? {};
  const read = new Map<string, unknown>();
  for (const [key, value] of Object.entries(params)) {
    const name = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const isNested = isTop && NESTED.includes(name) && typeof value === "object" && value !== null;
    if (key === name || !read.has(name)) read.set(name, isNested ? readParams(value, false) : value);
  }
  return Object.fromEntries(read);
}

/** The first thing that is wrong, with the field's name first. */
export function invalidParam(issues: readonly z.core.$ZodIssue[]) {
  const [issue] = issues;
  const field = issue === undefined || issue.path.length === 0 ? "params" : issue.path.map(String).join(".");
  return { message: `Invalid params: ${field}: ${issue?.message ?? "is not valid"}`, field };
}
