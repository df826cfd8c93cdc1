/**
 * How Codex is logged in, read from its auth.json and never written. A key can be used by any program that may read it; the
 * tokens of an account belong to Codex, which refreshes them, so two programs using them would log each other out.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { codexHome } from "../config/read-config.ts";

export type CodexLogin =
  | { readonly kind: "none" }
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "account" };

const AuthFile = z.object({
  OPENAI_API_KEY: z.string().nullish(),
  tokens: z.unknown().optional(),
});

export async function codexLogin(env: NodeJS.ProcessEnv): Promise<CodexLogin> {
  let file: unknown;
  try {
    file = JSON.parse(await readFile(path.join(codexHome(env), "auth.json"), "utf8"));
  } catch {
    // Absent, unreadable or torn: treated as not logged in, and the missing key is named.
    return { kind: "none" };
  }
  const auth = AuthFile.safeParse(file);
  if (!auth.success) return { kind: "none" };
  const key = auth.data.OPENAI_API_KEY?.trim() ?? "";
  if (key !== "") return { kind: "key", key };
  return (auth.data.tokens ?? undefined) === undefined ? { kind: "none" } : { kind: "account" };
}
