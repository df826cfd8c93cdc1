/** What this machine knows to be a secret is stored by no command, whichever opened the record. */
import { chmod, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

const SECRETS = {
  environment: "env-key-4f1b9c7e2a6d8053",
  login: "login-key-91d7c3e5b2f4a680",
  envHeader: "hdr-env-77",
  header: "hdr-conf-5e8a1c9d3b7f2046",
  query: "query-conf-2b6f0d8e4c1a9375",
};

const CONFIG = `
[model_providers.corp]
base_url = "http://127.0.0.1:9/v1"
env_key = "CORP_API_KEY"
env_http_headers = { "X-Team" = "TEAM_PASS" }
http_headers = { "X-Gate" = "Bearer ${SECRETS.header}" }
query_params = { sig = "${SECRETS.query}" }
[model_providers.other]
base_url = "http://127.0.0.1:9/v1"
env_key = "OTHER_API_KEY"
`;

const ALL = Object.values(SECRETS).join(" and ");

async function kept(world: World): Promise<string> {
  const files = await readdir(world.home);
  const record = files.filter((name) => name.startsWith("heddle.db"));
  return (await Promise.all(record.map((name) => readFile(path.join(world.home, name), "latin1")))).join("\n");
}

test("12.12: keys, stored logins of every provider and what is sent with requests are stored by no command", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", CONFIG);
  await chmod(world.home, 0o700);
  const env = { CORP_API_KEY: SECRETS.environment, TEAM_PASS: SECRETS.envHeader };
  const heddle = (...args: readonly string[]): ReturnType<typeof run> => run(args, { world, env });
  expect(await run(["login", "other", "--api-key-stdin"], { world, env, stdin: `${SECRETS.login}\n` })).toMatchObject({
    code: 0,
  });

  await world.file(
    "workspace/task.yaml",
    `name: first\nworkspace: .\ngoal: use ${ALL}\nchecks: [{file-exists: done.txt}]\n`,
  );
  expect(await heddle("task", "add", "task.yaml")).toMatchObject({ code: 0 });
  const script = await world.file("script.json", JSON.stringify([{ text: `I saw ${ALL}` }]));
  expect(await heddle("exec", "--script", script, `what are ${ALL}?`)).toMatchObject({ code: 0 });
  const threadId = (await heddle("threads", "list", "--json")).stdout.match(/"id":"([^"]+)"/)?.[1] ?? "";
  expect(await heddle("threads", "name", threadId, `named ${ALL}`)).toMatchObject({ code: 0 });

  const text = await kept(world);
  expect(text).toContain("[redacted:known-secret]");
  for (const [where, secret] of Object.entries(SECRETS)) expect(text.includes(secret), where).toBe(false);
});
