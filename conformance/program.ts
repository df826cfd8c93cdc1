/** The two programs that are compared, and how each is started. */
import { existsSync } from "node:fs";
import path from "node:path";

export interface Program {
  readonly name: "codex" | "heddle";
  readonly file: string;
  /** The arguments of a case as this program is given them. */
  adapt(args: readonly string[]): readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Where nobody listens: port 9 of this machine. */
export const DEAD_ADDRESS = "http://127.0.0.1:9";

const TARGETS: Readonly<Record<string, readonly [name: string, triple: string]>> = {
  "linux-x64": ["codex-linux-x64", "x86_64-unknown-linux-musl"],
  "linux-arm64": ["codex-linux-arm64", "aarch64-unknown-linux-musl"],
  "darwin-x64": ["codex-darwin-x64", "x86_64-apple-darwin"],
  "darwin-arm64": ["codex-darwin-arm64", "aarch64-apple-darwin"],
};

/** The one that was built for a run of the tests, or that of the checkout. */
const LAUNCHER =
  process.env["HEDDLE_E2E_LAUNCHER"] ?? path.join(import.meta.dirname, "..", "packages", "cli", "bin", "heddle.cjs");

export const heddle: Program = {
  name: "heddle",
  file: LAUNCHER,
  adapt: (args) => {
    // Heddle tells failures apart by exit code; this flag gives them the codes that users of Codex know.
    const at = args.indexOf("exec") + 1;
    return [...args.slice(0, at), "--codex-exit-codes", ...args.slice(at)];
  },
  env: {},
};

/** The program itself, without the JavaScript that npm puts before it: signals and times are its own. */
export function codex(): Program {
  const [name, triple] = TARGETS[`${process.platform}-${process.arch}`] ?? ["", ""];
  const file = path.join(import.meta.dirname, "node_modules", "@openai", name, "vendor", triple, "bin", "codex");
  if (name === "" || !existsSync(file)) throw new Error("Codex is not installed here; npm run conformance installs it");
  return {
    name: "codex",
    file,
    adapt: (args) => args,
    // Codex calls home. Whatever is not on this machine goes to a proxy that is not there.
    env: { HTTPS_PROXY: DEAD_ADDRESS, HTTP_PROXY: DEAD_ADDRESS, NO_PROXY: "127.0.0.1,localhost" },
  };
}

/** What Codex says of a machine without a sandbox helper of its own; it brings one along. Not what is compared here. */
export const NO_HELPER = "Codex could not find bubblewrap on PATH.";
