// Starts a turn over HTTP and follows it by server-sent events. First: heddle serve. Then: node http-sse.mjs "say hello"
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const home = process.env.HEDDLE_HOME ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8"));
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function post(path, body) {
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer;
}

/** Every event of a thread, across broken connections: the id of the last one is where to go on. */
async function* follow(threadId) {
  for (let last = 0; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      const response = await fetch(`${url}/api/threads/${threadId}/events`, {
        headers: { ...headers, "last-event-id": String(last) },
      });
      if (!response.ok) throw Object.assign(new Error(await response.text()), { isFinal: true });
      let rest = "";
      for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const field = (name) => block.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1];
          const data = field("data");
          if (data === undefined) continue;
          yield { name: field("event") ?? "stored", data: JSON.parse(data) };
          last = Number(field("id") ?? last);
        }
      }
    } catch (error) {
      if (error.isFinal) throw error;
    }
  }
}

const thread = await post("/api/threads", { workspace: process.cwd() });
// Sent again with the same clientId, after a timeout say, it would still be one turn.
const turn = await post(`/api/threads/${thread.id}/turns`, { input: process.argv[2], clientId: randomUUID() });
for await (const { name, data } of follow(thread.id)) {
  // Whole, whenever we began to listen; with ?deltas=true its pieces come before it, live.
  const { type, item } = data.body ?? {};
  if (type === "item.completed" && item.type === "agentMessage") process.stdout.write(item.text);
  if (name !== "stored" || data.body.type !== "turn.completed" || data.body.turnId !== turn.id) continue;
  process.stdout.write(`\n${data.body.status}, ${data.body.usage.outputTokens} output tokens\n`);
  process.exit(data.body.status === "completed" ? 0 : 1);
}
