import { appendFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { jsonLines, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

const FIXTURE = path.join(import.meta.dirname, "../../../agent/test/mcp-stdio-in-child.ts");

function offered({ server }: MockWorld): readonly string[] {
  const body: unknown = server.requests[0]?.body;
  const tools: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "tools") : [];
  return Array.isArray(tools) ? tools.map((tool) => String(Reflect.get(tool, "name"))) : [];
}

test("the tools of a server with a dot in its name are allowed by that name, and nothing else is", async () => {
  await using mock = await openMockWorld({
    script: [{ calls: [{ tool: "mcp__my_docs__echo", args: { text: "hello" } }] }, { text: "done" }],
  });
  const table = `[mcp_servers."my.docs"]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(FIXTURE)}, "good"]\n`;
  await appendFile(path.join(mock.world.home, "config.toml"), table);
  const ran = await mock.exec(["--json", "--allow-tool", "mcp.my.docs.*", "go"]);
  expect(ran).toMatchObject({ code: 0 });
  expect(offered(mock).every((name) => name.startsWith("mcp__my_docs__"))).toBe(true);
  expect(offered(mock)).toContain("mcp__my_docs__echo");
  const calls = jsonLines(ran).filter(
    ({ type, item }) => type === "item.completed" && item?.["type"] === "mcp_tool_call",
  );
  expect(calls).toMatchObject([{ item: { server: "my.docs", tool: "echo", status: "completed" } }]);
});

test("the tool for skills can be the only one that is allowed, whether there are skills or not", async () => {
  await using mock = await openMockWorld({ script: [{ text: "done" }] });
  expect(await mock.exec(["--json", "--allow-tool", "skill", "go"])).toMatchObject({ code: 0 });
  expect(offered(mock)).toEqual([]);
});
