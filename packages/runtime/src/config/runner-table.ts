/** `[runners.NAME]` of config.toml. */
import path from "node:path";
import { HostRule } from "@heddle/protocol";
import { z } from "zod";

const text = z.string().min(1);
const absolute = text.refine((folder) => path.isAbsolute(folder), "must be an absolute path");
const variable = text.regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable");

/** An agent program; what is not said is as the runner of this name has it. */
export const RunnerTable = z.strictObject({
  protocol: z.enum(["codex", "codex-exec", "claude", "opencode", "acp"]).optional(),
  /** A name on the PATH, or an absolute path. */
  command: text.optional(),
  args: z.array(z.string()).max(100).optional(),
  /** Names of variables that it gets although they hold secrets. */
  env: z.array(variable).max(100).optional(),
  /** The only one that is used, or its beginning. */
  version: text.max(64).optional(),
  /** Where its login and its record are. */
  folders: z.array(absolute).max(16).optional(),
  /** Where its models are. */
  hosts: z.array(HostRule).max(100).optional(),
  /** Its own interface, for a person who continues a conversation. */
  resume: z
    .array(text.max(1000))
    .min(1)
    .max(20)
    .refine((words) => words.some((word) => word.includes("{id}")), "must have {id} where the conversation is named")
    .optional(),
  model: text.optional(),
  /** Of a server that runs already. */
  url: z.url({ protocol: /^https?$/ }).optional(),
  user: text.optional(),
  /** The variable with the password of that server. */
  env_key: variable.optional(),
});
export type RunnerTable = z.infer<typeof RunnerTable>;
