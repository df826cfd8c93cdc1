// Receives notifications of Heddle, checks their signatures, and prints one line for each.
// Usage: HOOK_SECRET=... node notify-receiver.mjs [PORT]
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.HOOK_SECRET ?? "";
const seen = new Set();

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    if (!isSigned(request.headers["x-heddle-signature"], body)) {
      response.writeHead(401).end();
      return;
    }
    // At least once: what was delivered before comes with the same id.
    const id = request.headers["x-heddle-delivery"];
    if (!seen.has(id)) {
      seen.add(id);
      const { event, task_name: name, data } = JSON.parse(body.toString("utf8"));
      process.stdout.write(`${event} ${name}: ${data.summary ?? data.error ?? data.status}\n`);
    }
    response.writeHead(204).end();
  });
});

server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  process.stdout.write(`listening on http://127.0.0.1:${server.address().port}/\n`);
});

// t=SECONDS,v1=HEX of HMAC-SHA-256 over "SECONDS.BODY"; older than five minutes is somebody else's.
function isSigned(header, body) {
  const [, seconds, given] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? "") ?? [];
  if (seconds === undefined || Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return false;
  const expected = createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex");
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected));
}
