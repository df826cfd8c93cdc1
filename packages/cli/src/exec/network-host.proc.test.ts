import { createServer } from "node:http";
import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";

const GET = (url: string): string =>
  `${process.execPath} -e 'require("http").get("${url}", (answer) => answer.pipe(process.stdout))'`;

async function openWeb() {
  const server = createServer((_, response) => void response.end("hello from the host"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

test("S3: --network-host and network_hosts let commands reach one host, and the record shows what was refused", async () => {
  await using web = await openWeb();
  await using world = await openWorld();
  const cmd = `${GET(`http://localhost:${web.port}/`)}; ${GET("http://evil.example/")}`;
  const script = await world.file(
    "script.json",
    JSON.stringify([{ calls: [{ tool: "bash", args: { command: cmd } }] }, { text: "done" }]),
  );
  const words = ["exec", "--skip-git-repo-check", "--json", "--script", script];
  const said = await run([...words, "--network-host", `localhost:${web.port}`, "go"], { world });
  expect(said.code).toBe(0);
  expect(said.stdout).toContain("hello from the host");
  expect(said.stdout).toContain("heddle: evil.example:80 is not among the hosts");
  const [, id = ""] = /"thread_id":"([^"]+)"/.exec(said.stdout) ?? [];
  const shown = await run(["threads", "show", id], { world });
  expect(shown.stdout).toMatch(new RegExp(`localhost:${web.port} 1 request, \\d+ bytes sent, \\d+ received`));
  expect(shown.stdout).toContain("evil.example:80 not-listed, 1 times");

  const list = `sandbox_workspace_write.network_hosts=["localhost:${web.port}"]`;
  const configured = await run([...words, "-c", list, "go"], { world });
  expect(configured.stdout).toContain("hello from the host");
  const preflight = await run([...words.slice(0, 2), "--preflight", "--script", script, "-c", list, "go"], { world });
  expect(preflight.stdout + preflight.stderr).toContain(`network: localhost:${web.port}`);
});

test.for([
  [["--network-host", "EXAMPLE.org"], '--network-host "EXAMPLE.org" must be a host in lower case'],
  [["--network-host", "2130706433"], "an address is written as 127.0.0.1"],
  [["--network-host", "example.org:99999"], "a port is at most 65535"],
  [["-s", "danger-full-access", "--network-host", "example.org"], "--network-host has no effect without a sandbox"],
] as const)("%j is refused", async ([words, why]) => {
  await using world = await openWorld();
  const ran = await run(["exec", "--skip-git-repo-check", ...words, "go"], { world });
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
});
