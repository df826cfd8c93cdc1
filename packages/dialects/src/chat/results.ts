/** What is answered, method by method. */
import { z } from "zod";
import { CHAT_EVENTS, type ChatTopic } from "./events.ts";
import { ChatStatus } from "./params.ts";
import { ChatSettings } from "./settings.ts";
import { ThreadView } from "./view.ts";

const ok = z.literal(true);
const id = z.string();
const turnStatus = z.enum(["queued", "running", "completed", "interrupted", "failed"]);

export const ChatRecord = z.object({
  chat_id: id,
  thread_id: id,
  title: z.string().nullable(),
  preview: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  status: ChatStatus,
  last_seq: z.int(),
  event_pointer: z.int().meta({ description: "The same as last_seq, for older clients" }),
  active_turn_id: id.nullable(),
  pending_approvals: z.int(),
  settings: ChatSettings,
  runner: z.string(),
  provider_thread_id: id.nullable(),
});
export type ChatRecord = z.infer<typeof ChatRecord>;

/** An event in a list, with its topic. */
const ListedEvent = z.looseObject({
  topic: z.enum(Object.keys(CHAT_EVENTS) as [ChatTopic, ...ChatTopic[]]),
  seq: z.int(),
});

const ProviderStatus = z.object({
  id,
  key: id,
  profile: z.string(),
  enabled: z.boolean(),
  logged_in: z.boolean(),
  health: z.enum(["ready", "refresh_on_use", "reconnect_required", "disconnected"]),
  reason: z.string().optional(),
  method: z.string().optional(),
  methods: z.array(z.string()),
  expires_at: z.string().optional(),
  account_label: z.string().optional(),
  plan: z.string().optional(),
});
export type ProviderStatus = z.infer<typeof ProviderStatus>;

export const OkResult = z.object({ ok });
export const HelloResult = z.object({
  type: z.literal("hello"),
  protocol_version: z.int(),
  server_id: id,
  identity: z.object({ name: z.string(), role: z.string() }),
  services: z.array(z.object({ service: z.string(), version: z.string() })),
});
export const ChatResult = z.object({ chat_id: id, thread_id: id });
export const ResumeResult = z.object({
  chat_id: id,
  thread_id: id,
  last_seq: z.int(),
  active_turn_id: id.nullable(),
  events: z.array(ListedEvent).optional(),
  has_more: z.boolean().optional(),
});
export const SendResult = z.object({
  chat_id: id,
  turn_id: id,
  queued: z.literal(true).optional(),
  item_id: id.nullable().meta({ description: "null: the message waits, or is added to a turn" }),
  duplicate: z.literal(true).optional(),
});
export const CancelResult = z.object({ ok, turn_id: id, status: turnStatus });
export const ApprovalResult = z.object({ ok, already: z.literal(true).optional() });
export const ListResult = z.object({ chats: z.array(ChatRecord), next_cursor: id.optional() });
export const ThreadReadResult = z.object({ thread: ThreadView, settings: ChatSettings });
export const ThreadSummarizeResult = z.object({
  chat_id: id,
  thread_id: id,
  summary: z.string().nullable().meta({ description: "null when none is available" }),
});
export const ThreadListResult = z.object({ threads: z.array(ChatRecord), next_cursor: id.optional() });
export const RenameResult = z.object({ ok, title: z.string() });
export const SettingsResult = z.object({ ok, settings: ChatSettings });
export const FilesResult = z.object({
  files: z.array(
    z.object({ name: z.string(), path: z.string(), relative_path: z.string(), type: z.enum(["file", "directory"]) }),
  ),
  base_path: z.string(),
  truncated: z.literal(true).optional(),
});
export const SkillsResult = z.object({
  data: z.array(
    z.object({
      skills: z.array(z.object({ name: z.string(), path: z.string(), description: z.string(), enabled: z.boolean() })),
    }),
  ),
});
export const SkillsConfigResult = z.object({ ok, enabled: z.boolean() });
export const ModelsResult = z.object({
  data: z.array(
    z.object({ id, model: z.string(), provider: z.string(), display_name: z.string(), is_default: z.boolean() }),
  ),
  fetched_at: z.string(),
  stale: z.boolean(),
});
export const ToolsResult = z.object({
  data: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      provider: z.string(),
      provider_dynamic: z.boolean(),
      input_schema: z.unknown(),
    }),
  ),
});
export const ModesResult = z.object({
  data: z.array(z.object({ name: z.string(), mode: z.string(), description: z.string() })),
});
export const AccountReadResult = z.object({
  account: z.object({ providers: z.array(ProviderStatus) }).nullable(),
  providers: z.array(ProviderStatus),
  logged_in: z.boolean(),
  requires_openai_auth: z.boolean(),
});
export const AccountListResult = z.object({ providers: z.array(ProviderStatus) });
export const AccountRefreshResult = z.object({ provider: ProviderStatus });
export const LoginStartResult = z.object({
  session: z.object({
    login_id: id,
    provider: id,
    method: z.string(),
    verification_url: z.string().optional(),
    auth_url: z.string().optional(),
    user_code: z.string().optional(),
    interval_secs: z.number().optional(),
    expires_at: z.string().optional(),
  }),
});
export const LoginPollResult = z.object({
  status: z.enum(["pending", "slow_down", "authorized", "denied", "expired", "error"]),
  interval_secs: z.number().optional(),
  error: z.string().optional(),
});
export const EventsListResult = z.object({
  events: z.array(ListedEvent),
  last_seq: z.int(),
  oldest_seq: z.int(),
});
export const SubscribeResult = z.object({ subscription_id: id });
