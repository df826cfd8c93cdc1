/**
 * A token that a program of the owner prints: started without a shell, with few variables, and limits on time and output.
 * What it prints is a token or nothing; it is never repeated in a message, and stderr is not read.
 */
import { homedir } from "node:os";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { Environment, TokenCommand } from "../providers/provider-auth.ts";
import { parseJson } from "../wire/untrusted.ts";
import { runChild, type ChildEnd } from "./child.ts";
import { isPlainToken } from "./plain-token.ts";
import type { FreshToken } from "./token-cache.ts";
import { tokenFacts } from "./tokens.ts";

const TIMEOUT_MS = 30_000;
/** More than any token has. */
const MAX_OUTPUT_BYTES = 64 * 1024;
const REFRESH_SECONDS = 300;

export interface CommandTokenOptions {
  /** For messages. */
  readonly provider: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export async function commandToken(auth: TokenCommand, options: CommandTokenOptions): Promise<FreshToken> {
  const { provider, env, signal, now = Date.now } = options;
  const [program = "", ...args] = auth.command;
  if (program.includes("/") && !path.isAbsolute(program)) {
    // A relative path would depend on the folder of the run, which may be anyone's.
    throw failed(
      provider,
      `must name a program by its absolute path or by its bare name, not ${program}`,
      "config.invalid",
    );
  }
  const { timeoutMs = TIMEOUT_MS } = auth;
  const ended = await runChild(program, args, {
    env,
    timeoutMs,
    passedOn: auth.envVars,
    cwd: env["HOME"] || homedir(),
    maxOutputBytes: MAX_OUTPUT_BYTES,
    signal,
  });
  signal.throwIfAborted();
  const token = ended.kind === "exited" && ended.code === 0 ? readToken(ended.stdout, auth, now()) : undefined;
  if (token !== undefined) return token;
  throw failed(provider, whyNot(ended, program, timeoutMs));
}

function whyNot(ended: ChildEnd, program: string, timeoutMs: number): string {
  const byHand = "run it by hand to see why";
  switch (ended.kind) {
    case "missing":
      return `names ${program}, which cannot be started`;
    case "timeout":
      return `gave no token within ${timeoutMs} ms; ${byHand}`;
    case "flood":
      return `printed more than ${MAX_OUTPUT_BYTES / 1024} KiB, which is not a token`;
    case "exited":
      if (ended.code !== 0) return `ended with exit code ${ended.code}; ${byHand}`;
      return "must print one token on one line, or a JSON object with accessToken and expires_on; it printed neither";
  }
}

function failed(provider: string, why: string, code: "auth.missing" | "config.invalid" = "auth.missing"): HeddleError {
  return new HeddleError(code, `the command of model_providers.${provider}.auth ${why}`, { details: { provider } });
}

const seconds = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d{1,12}$/)
    .transform(Number),
]);

/** As the programs of Azure, Google and others print it. */
const Printed = z.object({
  accessToken: z.string().optional(),
  access_token: z.string().optional(),
  token: z.string().optional(),
  /** Since 1970. */
  expires_on: seconds.optional().catch(undefined),
  expires_at: seconds.optional().catch(undefined),
  expires_in: seconds.optional().catch(undefined),
});

function readToken(
  stdout: string,
  { refreshSeconds = REFRESH_SECONDS }: TokenCommand,
  now: number,
): FreshToken | undefined {
  const text = stdout.replace(/\r?\n$/, "");
  const isJson = text.trimStart().startsWith("{");
  const printed: z.infer<typeof Printed> | undefined = isJson
    ? Printed.safeParse(parseJson(text)).data
    : { token: text };
  const token = printed?.accessToken ?? printed?.access_token ?? printed?.token;
  if (printed === undefined || token === undefined || !isPlainToken(token)) return undefined;
  const at = printed.expires_on ?? printed.expires_at;
  const expiresAt =
    (at === undefined ? undefined : at * 1000) ??
    (printed.expires_in === undefined ? undefined : now + printed.expires_in * 1000) ??
    tokenFacts(token).expiresAt ??
    now + refreshSeconds * 1000;
  return { token, expiresAt };
}
