/** `[inbox]` of config.toml. */
import path from "node:path";
import { z } from "zod";

const text = z.string().min(1);
const absolute = text.refine((folder) => path.isAbsolute(folder), "must be an absolute path");
const variable = text.regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable");

const WebhookSourceTable = z.strictObject({
  type: z.enum(["generic", "github"]).optional(),
  secret_env: variable.optional(),
  workspace: absolute.optional(),
  /** By repository, `owner/name`. */
  workspaces: z.record(text, absolute).optional(),
  label: text.optional(),
  command: text.optional(),
});

/** A folder whose files become tasks, and programs elsewhere that may send orders. */
export const InboxTable = z.strictObject({
  folder: absolute.optional(),
  default_workspace: absolute.optional(),
  default_thread: text.optional(),
  /** How often one looks when nothing was noticed. */
  poll_seconds: z.number().min(1).max(3600).optional(),
  /** How long a file must stay the same before it is taken. */
  settle_ms: z.int().min(50).max(60_000).optional(),
  webhooks: z.record(text, WebhookSourceTable).optional(),
});
export type InboxTable = z.infer<typeof InboxTable>;
