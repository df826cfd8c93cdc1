/**
 * Gets ready for a provider and asks it when told to: node --conditions=heddle-source ask-in-child.ts <base-url> [ask]
 * Prints what came of it; without `ask` it has nothing more to do and ends.
 */
import { once } from "node:events";
import { resolveProvider, streamModel, warmProvider } from "../src/index.ts";
import { sampleRequest } from "../src/testing/testing-requests.ts";

const [, , baseUrl = "", isAsking] = process.argv;
const config = { id: "test", wire: "openai-responses", baseUrl, apiKey: "test-key", maxAttempts: 1 } as const;
const provider = resolveProvider([config], "test", {});
await warmProvider(provider);
if (isAsking !== undefined) {
  await once(process.stdin, "data");
  for await (const event of streamModel(provider, sampleRequest(), { signal: AbortSignal.timeout(60_000) })) {
    if (event.type === "completed") process.stdout.write("completed");
  }
  process.exit(0);
}
