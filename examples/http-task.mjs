// Has a task carried out over HTTP and follows it until its checks have decided. First: heddle serve.
// Then, in the folder to work in: node http-task.mjs "write NOTES.md" NOTES.md
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const [goal, file] = process.argv.slice(2);
const home = process.env.HEDDLE_HOME ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8"));
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

const say = (line) => process.stdout.write(`${line}\n`);

async function call(path, options = {}) {
  const response = await fetch(url + path, { headers, ...options });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer;
}

/** Every event of a task after a number, across broken connections. */
async function* follow(taskId, after) {
  for (let last = after; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      const response = await fetch(`${url}/api/tasks/${taskId}/events`, {
        headers: { ...headers, "last-event-id": String(last) },
      });
      if (!response.ok) throw Object.assign(new Error(await response.text()), { isFinal: true });
      let rest = "";
      for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const [, id, data] = block.match(/^id: (\d+)\ndata: (.*)$/) ?? [];
          if (data === undefined) continue;
          yield JSON.parse(data).body;
          last = Number(id);
        }
      }
    } catch (error) {
      if (error.isFinal) throw error;
    }
  }
}

const order = {
  spec: { goal, workspace: process.cwd(), checks: [{ "file-exists": file }] },
  // Sent again with the same clientId, after a timeout say, it would still be one task.
  clientId: randomUUID(),
};
const task = await call("/api/tasks", { method: "POST", body: JSON.stringify(order) });
say(`${task.id}  ${task.state}`);
// After the event that we know of: nothing that has happened since is missed.
for await (const event of follow(task.id, task.seq)) {
  if (event.type === "task.prompted") say(`turn ${event.round}: ${event.why}`);
  if (event.type === "task.claimed") say(`the agent says: ${event.summary}`);
  if (event.type === "task.rejected") say(`not done: ${event.failing.join(", ")}`);
  if (event.type === "task.paused") throw new Error(event.message);
  if (event.type === "task.failed") throw new Error(event.failure.message);
  if (event.type === "task.verified") break;
}
const { data } = await call(`/api/usage?by=model&task=${task.id}`);
for (const { of, requests, usage } of data)
  say(`${of.model}: ${requests} requests, ${usage.outputTokens} output tokens`);
say("verified");
