/**
 * Asks a provider with a key and prints which files that took: node --conditions=heddle-source loaded-in-child.ts <base-url>
 */
import { registerHooks } from "node:module";

const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});

const { resolveProvider, streamModel, warmProvider } = await import("../src/index.ts");
const config = { id: "test", wire: "anthropic", baseUrl: process.argv[2] ?? "", key: "test-key" } as const;
const provider = resolveProvider([config], "test", {});
await warmProvider(provider);
const input = [{ kind: "user", parts: [{ type: "text", text: "hello" }] }] as const;
const request = { model: "m", instructions: "", input, tools: [], cacheKey: "t" };
for await (const event of streamModel(provider, request, { signal: AbortSignal.timeout(60_000) }))
  if (event.type === "completed") process.stdout.write(loaded.join("\n"));
process.exit(0);
