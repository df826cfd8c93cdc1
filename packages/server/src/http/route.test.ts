import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { whileAsked } from "./route.ts";

test("work for a client that has gone before it begins is aborted from the start", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const client = request({ host: "127.0.0.1", port, agent: false }).on("error", () => undefined);
  client.end();
  const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
  const here = whileAsked({ response });
  expect(here.aborted).toBe(false);
  client.destroy();
  await once(response, "close");
  expect(here.aborted).toBe(true);
  expect(whileAsked({ response }).aborted).toBe(true);
  server.close();
});
