// An agent of your own in an envelope of Heddle, over one WebSocket. First, in the folder to work in: heddle serve.
// Then: node envelope-session.mjs (Node 22 or newer, with the package heddle installed)
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { connectSessions } from "heddle/client";

const home = process.env.HEDDLE_HOME ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8"));
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();

const text = ({ output }) => output.map((part) => part.text ?? "").join("");
const write = (file_path) => ["write", { file_path, content: "woven\n" }];

const first = await connectSessions({ url, token, name: "weaver" });
// Without approvalPolicy the owner of the server is asked about what the envelope does not allow, and the call waits for the answer.
const agent = { agentName: "weaver", approvalPolicy: "never" };
const session = await first.enter({ envelope: "edit", onDisconnect: "keep", ...agent });
assert.ok(session.tools.some(({ name }) => name === "write"));

// Inside the envelope; what is outside of it is refused, and that is on record too.
assert.equal((await session.tool(...write("cloth.txt"))).outcome, "ok");
assert.equal((await session.tool(...write("/etc/cloth.txt"))).outcome, "denied");

// In `explore` there is nothing that writes, neither a tool nor a command.
await session.hop("explore", "the rest is only looked at");
assert.ok(!session.tools.some(({ name }) => name === "write"));
assert.notEqual((await session.tool("bash", { command: "echo torn > cloth.txt" })).outcome, "ok");

// A call whose answer is lost has run once: it is asked for again over another connection, under the same id.
const call = ["bash", { command: "sleep 1; cat cloth.txt" }, { callId: "look" }];
const lost = session.tool(...call).catch((error) => error.code);
await first.close();
assert.equal(await lost, "server.unreachable");
const second = await connectSessions({ url, token, name: "weaver" });
const resumed = await second.resume(session.turnId);
assert.match(text(await resumed.tool(...call)), /woven/);

await resumed.leave({ file: "cloth.txt" });
console.log(`left; prove it with: heddle verify ${session.threadId}`);
await second.close();
