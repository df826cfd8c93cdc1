/**
 * Keys of AWS: those of the environment, or of a profile of the shared credentials file, which is read for each request
 * because other programs renew it. A profile that needs more (a role, single sign-on, a program) is refused by name.
 */
import { homedir } from "node:os";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { AWS_VARIABLES, type BedrockAuth, type Environment } from "../providers/provider-auth.ts";
import type { AwsCredentials } from "./aws-signature.ts";
import { isPlainToken } from "./plain-token.ts";
import { readSmallFile } from "./small-file.ts";

const EXPORT = 'eval "$(aws configure export-credentials --format env)"';

export interface FoundAwsCredentials extends AwsCredentials {
  /** For messages. */
  readonly source: string;
}

export async function awsCredentials(auth: BedrockAuth, env: Environment): Promise<FoundAwsCredentials> {
  const own = auth.profile === undefined && auth.credentialsFile === undefined ? fromEnvironment(env) : undefined;
  if (own !== undefined) return own;
  const file = auth.credentialsFile ?? (env["AWS_SHARED_CREDENTIALS_FILE"] || inHome(env, "credentials"));
  const profile = auth.profile ?? (env["AWS_PROFILE"] || "default");
  const source = `profile ${profile} of ${file}`;
  const entry = sectionOf(await readSmallFile(file), profile);
  const found = entry === undefined ? undefined : checked(entry, source);
  if (found !== undefined) return found;
  const config = env["AWS_CONFIG_FILE"] || inHome(env, "config");
  const settings = sectionOf(await readSmallFile(config), profile === "default" ? profile : `profile ${profile}`);
  const way = [...(settings?.keys() ?? []), ...(entry?.keys() ?? [])].find((key) => LEADS_ELSEWHERE.test(key));
  const why =
    way === undefined ? `there are no AWS keys in the environment nor in ${source}` : `${source} leads to ${way}`;
  throw new HeddleError(
    "auth.missing",
    `${why}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (${EXPORT}), run aws configure, or set AWS_BEARER_TOKEN_BEDROCK`,
  );
}

const LEADS_ELSEWHERE = /^(sso_|role_arn$|credential_process$|web_identity|login_session$)/;

function inHome(env: Environment, name: string): string {
  return path.join(env["HOME"] || homedir(), ".aws", name);
}

function fromEnvironment(env: Environment): FoundAwsCredentials | undefined {
  const entry = new Map([
    ["aws_access_key_id", env[AWS_VARIABLES.accessKeyId] ?? ""],
    ["aws_secret_access_key", env[AWS_VARIABLES.secretAccessKey] ?? ""],
    ["aws_session_token", env[AWS_VARIABLES.sessionToken] ?? ""],
  ]);
  return checked(entry, AWS_VARIABLES.accessKeyId);
}

function checked(entry: ReadonlyMap<string, string>, source: string): FoundAwsCredentials | undefined {
  const value = (name: string): string => entry.get(name)?.trim() ?? "";
  const accessKeyId = value("aws_access_key_id");
  const secretAccessKey = value("aws_secret_access_key");
  const sessionToken = value("aws_session_token");
  if (accessKeyId === "" || secretAccessKey === "") return undefined;
  const isPlain = /^\w{1,128}$/.test(accessKeyId) && [secretAccessKey, sessionToken || "-"].every(isPlainToken);
  if (!isPlain)
    throw new HeddleError("auth.missing", `the AWS keys in ${source} have characters that are not allowed in a key`);
  return { accessKeyId, secretAccessKey, source, ...(sessionToken === "" ? {} : { sessionToken }) };
}

/** Longer than any name, key or token. */
const MAX_LINE = 16 * 1024;

/** One section of a file as AWS's programs write them; undefined when it does not exist. */
function sectionOf(text: string | undefined, wanted: string): ReadonlyMap<string, string> | undefined {
  let entries: Map<string, string> | undefined;
  let isWanted = false;
  for (const line of (text ?? "").split("\n")) {
    if (line.length > MAX_LINE) continue;
    const name = sectionName(line.trim());
    if (name !== undefined) {
      isWanted = name === wanted;
      if (isWanted) entries ??= new Map();
      continue;
    }
    const equals = line.indexOf("=");
    // An indented line belongs to the value above it.
    const key = line.slice(0, Math.max(0, equals)).trimEnd();
    if (isWanted && /^[\w-]+$/.test(key)) entries?.set(key.toLowerCase(), line.slice(equals + 1).trim());
  }
  return entries;
}

function sectionName(line: string): string | undefined {
  const end = line.startsWith("[") ? line.indexOf("]") : -1;
  return end < 0 ? undefined : line.slice(1, end).trim();
}
