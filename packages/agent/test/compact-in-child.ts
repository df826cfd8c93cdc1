/** A process of its own that compacts a thread, to be struck at a failpoint: home, thread and base URL of the provider. */
import { openHeddle } from "../src/index.ts";

const [home = "", threadId = "", baseUrl = ""] = process.argv.slice(2);
const provider = { id: "test", name: "Test", wire: "openai-responses" as const, baseUrl, key: "test-key" };
await using heddle = await openHeddle({ home, providers: [provider], env: process.env, isUnattended: true });
const turn = await heddle.as("user:owner").compact(threadId);
process.stdout.write((await turn.done).body.status);
