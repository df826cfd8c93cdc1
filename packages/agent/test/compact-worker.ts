/** A process of its own that compacts a thread, to be struck at a failpoint: `compact-worker.ts <options as JSON>`. */
import type { ProviderConfig } from "@heddle/models";
import { z } from "zod";
import { openHeddle } from "../src/index.ts";

const Options = z.object({
  home: z.string(),
  threadId: z.string(),
  provider: z.custom<ProviderConfig>((value) => typeof value === "object"),
});

const { home, threadId, provider } = Options.parse(JSON.parse(process.argv[2] ?? ""));
await using heddle = await openHeddle({ home, providers: [provider], env: process.env, isUnattended: true });
const turn = await heddle.compact(threadId);
process.stdout.write((await turn.done).body.status);
