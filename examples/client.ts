// Runs one turn on a server and shows it. First: heddle serve. Then:
//   node client.ts "what does this project do?"
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { HeddleApiError, HeddleClient } from "heddle/client";

const home = process.env["HEDDLE_HOME"] ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8")) as { url: string };
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
const heddle = new HeddleClient({ url, token });

try {
  const thread = await heddle.createThread({ workspace: process.cwd() });
  const { turn, message } = await heddle.runTurn(
    thread.id,
    { input: process.argv[2] ?? "what does this project do?", clientId: crypto.randomUUID() },
    {
      onEvent(followed) {
        if (followed.kind !== "event" || followed.event.body.type !== "item.completed") return;
        const { item } = followed.event.body;
        if (item.type === "commandExecution") console.error(`$ ${item.command}`);
      },
    },
  );
  console.log(message);
  console.error(`${turn.status}, ${turn.usage?.outputTokens ?? 0} tokens, thread ${thread.id}`);
} catch (error) {
  if (!(error instanceof HeddleApiError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
