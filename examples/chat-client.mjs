// One message to a chat, followed to its end. First: heddle serve. Then: node chat-client.mjs "say hello" [CHAT_ID]
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const home = process.env.HEDDLE_HOME ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8"));
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
const [message = "say hello", resumed] = process.argv.slice(2);
const say = (words) => process.stdout.write(`${words}\n`);

/** `told` gets every event; resolves with what asks, when the connection is open. */
function connect(told, closed) {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/?token=${token}`);
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const { id, method, params, result, error } = JSON.parse(data);
    if (method !== undefined) return told(method, params);
    return waiting.get(id)(error === undefined ? result : Promise.reject(new Error(error.message)));
  };
  const call = (method, params) =>
    new Promise((resolve) => {
      const id = randomUUID();
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(call);
    socket.onerror = () => reject(new Error(`nobody answers at ${url}`));
    socket.onclose = closed;
  });
}

const sending = { message, client_message_id: randomUUID() };
let [chatId, turnId, lastSeq, call] = [resumed, undefined, 0];

function told(topic, event) {
  if (event.chat_id !== chatId) return;
  if (!event.live) lastSeq = event.seq;
  if (topic === "chat.item.completed" && event.item.type === "agentMessage") say(event.item.text);
  // Nobody sits here to be asked; a program with a person in front of it would show the question.
  const { request_id } = event;
  if (topic === "chat.approval.required") call("chat.approval.respond", { request_id, decision: "decline" }).catch(say);
  if (topic !== "chat.turn.completed" || event.turnId !== turnId) return;
  say(`${event.status}${event.error ? `: ${event.error.message}` : ""} (chat ${chatId})`);
  process.exit(event.status === "completed" ? 0 : 1);
}

/** Also after a broken connection: the events that were missed come first, and the same message again is the same turn. */
async function begin() {
  call = await connect(told, () => void setTimeout(() => void begin().catch(say), 1000));
  await call("hello", { protocol: { min: 1, max: 1 }, client_id: "example" });
  chatId ??= (await call("chat.create", { cwd: process.cwd(), client_id: "example" })).chat_id;
  lastSeq ||= (await call("chat.resume", { chat_id: chatId })).last_seq;
  turnId = (await call("chat.message.send", { chat_id: chatId, ...sending })).turn_id;
  await call("events.subscribe", { topic: "chat.*", after: { [chatId]: lastSeq } });
}

await begin();
