/** Works on a credential store until it is killed, or does one thing: `write HOME`, `hold HOME`, `use HOME ISSUER`. */
import { flushCompileCache } from "node:module";
import { usableOAuth } from "../src/auth/refresh.ts";
import { openCredentialStore } from "../src/auth/store.ts";
import { openaiIssuer } from "../src/auth/issuer.ts";
import { apiKey, CODEX_KEY } from "./auth-home.ts";

// Nobody who is killed leaves anything for the next one otherwise.
flushCompileCache();
const [what, home = "", issuerUrl = ""] = process.argv.slice(2);
const store = openCredentialStore({ home });
const key = { owner: "local", provider: "openai", profile: "default" };

if (what === "write") {
  const once = process.argv[4] === "once";
  if (!once) for await (const _chunk of process.stdin) break;
  for (let number = 0; ; number += 1) {
    await store.change(key, () => apiKey("openai", `${number} `.repeat(20_000).slice(0, 60_000)));
    if (number === 0) process.stdout.write("ready\n");
    if (once) break;
  }
} else if (what === "hold") {
  await store.change(key, async () => {
    process.stdout.write("ready\n");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
    return undefined;
  });
} else if (what === "use") {
  process.stdout.write("ready\n");
  for await (const _chunk of process.stdin) break;
  const issuer = openaiIssuer({ HEDDLE_TEST_OPENAI_ISSUER: issuerUrl });
  const { accessToken } = await usableOAuth({ store, issuer, key: CODEX_KEY, signal: AbortSignal.timeout(60_000) });
  process.stdout.write(`${accessToken}\n`);
}
process.exit(0);
