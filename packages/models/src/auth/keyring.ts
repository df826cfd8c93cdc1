/**
 * The keyring of the desktop, through `secret-tool`: the same document as in the file, stored as one secret for each home.
 * Used only with HEDDLE_CREDENTIALS=keyring; when it fails, nothing is stored anywhere else.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import type { Environment } from "../providers/provider-auth.ts";
import { runChild, type ChildEnd } from "./child.ts";
import type { Vault } from "./store.ts";

const TIMEOUT_MS = 20_000;
/** The exit code of `secret-tool lookup` when there is no such secret. */
const NOT_FOUND = 1;

export function keyringVault(home: string, env: Environment): Vault {
  const location = "the keyring of this desktop";
  const account = createHash("sha256").update(path.resolve(home)).digest("hex").slice(0, 16);
  const attributes = ["application", "heddle", "kind", "credentials", "home", account];
  const call = async (args: readonly string[], stdin?: string): Promise<ChildEnd & { kind: "exited" }> => {
    const options = { env, timeoutMs: TIMEOUT_MS, ...(stdin === undefined ? {} : { stdin }) };
    const ended = await runChild("secret-tool", args, options);
    if (ended.kind === "exited") return ended;
    const why = ended.kind === "missing" ? "secret-tool is not installed" : "secret-tool does not respond";
    throw new HeddleError("store.failed", `${location} cannot be used: ${why}`);
  };
  return {
    location,
    async read() {
      const { code, stdout } = await call(["lookup", ...attributes]);
      if (code === 0 && stdout !== "") return stdout;
      if (code === NOT_FOUND || code === 0) return undefined;
      throw new HeddleError("store.failed", `${location} cannot be read (exit code ${code})`);
    },
    async write(text) {
      // On standard input: every process can see arguments.
      const { code } = await call(["store", "--label=Heddle credentials", ...attributes], text);
      if (code !== 0) throw new HeddleError("store.failed", `${location} stored nothing (exit code ${code})`);
    },
  };
}
